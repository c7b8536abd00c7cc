"""`python -m tools.library_forms [PROGRAM ...]`: adds to `weft/library/forms.txt` what they need.

Without names, all programs, on an empty list. A name that ends in `.py` is a script for PyTorch,
with its arguments, as `weft run` takes them. Use a code cache (`WEFT_CACHE`) that is empty, or that
has the library alone.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence

import weft as wf
from bench import once
from tools.library_forms import declared, graphs
from tools.library_forms.calls import PROGRAMS
from tools.library_forms.networks import NETWORKS
from tools.library_forms.recorder import Forms, fused, nothing_runs, recorded
from weft.cli.main import main as cli
from weft.errors import WeftError
from weft.library.making import listed
from weft.runtime.compilation.pack import FORMS


def text(forms: Forms) -> str:
    """The list as a file."""
    lines = [f"{json.dumps(sizes, separators=(',', ':'))} {form}" for form, sizes in forms.items()]
    return "".join([f"{line}\n" for line in lines])


BENCHED = (
    "first:matmul", "first:sampler", "first:resnet50_two", "first:decoder", "first:bert",
    "first:batches", "first:examples", "first:cells", "repl:total", "repl:elements", "repl:sizes",
    "repl:policy", "repl:episodes", "repl:notebook", "generate:text", "complaints:neuron",
    "complaints:rotation", "complaints:differences", "complaints:search", "lengths:lengths",
)  # fmt: skip
"""Programs of the benchmark, by their places in `bench/work`."""


def call(place: str) -> None:
    """Runs a program of the benchmark."""
    turn = once.function(place, "weft")(once.library("weft", False, 2))
    found = turn()
    if isinstance(found, Iterator):
        for _ in found:
            pass
    wf.synchronize()


def main(names: Sequence[str]) -> None:
    """Runs programs; those of the benchmark need the values that they compute."""
    kept = {form: list(sizes) for form, sizes in listed()} if names else {}
    with recorded() as forms:
        for place in [place for place in BENCHED if not names or place in names]:
            with told(place, forms):
                call(place)
        for name in [name for name in names if ".py" in name]:
            with told(name, forms):
                cli(["run", *name.split()])
        for program in (*PROGRAMS, *NETWORKS):
            if not names or program.__name__ in names:
                with told(program.__name__, forms), nothing_runs():
                    for y in program():
                        with contextlib.suppress(WeftError):  # of values that are not there
                            if isinstance(y, wf.Tensor):
                                y.detach().numpy()
        for program in [x for x in graphs.PROGRAMS if not names or x.__name__ in names]:
            with told(program.__name__, forms):
                program()
            with told(f"{program.__name__}, fused", forms), fused():
                program()
        if not names or "declared" in names:
            with told("declared", forms), nothing_runs():
                declared.write([*kept, *forms])
    for form, sizes in forms.items():
        kept[form] = list(dict.fromkeys([*kept.get(form, []), *sizes]))
    FORMS.write_text(text(kept), encoding="ascii")


@contextlib.contextmanager
def told(name: str, forms: Forms) -> Iterator[None]:
    """Prints what a program has added."""
    start, before = time.process_time(), sum(map(len, forms.values()))
    yield
    count = sum(map(len, forms.values())) - before
    print(f"{name}: {count} variants, {time.process_time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
