"""`python -m tools.library_forms`: writes `weft/library/forms.txt`, with an empty code cache."""

from __future__ import annotations

import json
import sys
import time

import weft as wf
from tools.library_forms.calls import PROGRAMS
from tools.library_forms.recorder import Forms, recorded
from weft.library.making import LIST


def text(forms: Forms) -> str:
    """The list as a file."""
    lines = [f"{json.dumps(sizes, separators=(',', ':'))} {form}" for form, sizes in forms.items()]
    return "".join([f"{line}\n" for line in lines])


def main() -> None:
    with recorded() as forms:
        for program in PROGRAMS:
            start, before = time.process_time(), len(forms)
            for y in program():
                if isinstance(y, wf.Tensor):
                    y.numpy()
            count = len(forms) - before
            print(f"{program.__name__}: {count} forms, {time.process_time() - start:.1f} s", flush=True)
        print(sum(map(len, forms.values())), "variants")
    LIST.write_text(text(forms), encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
