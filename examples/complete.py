"""Completes the Python that you type, streaming one character at a time.

Loads `--model FILE` if the file exists. Otherwise it learns from the standard library's source and
saves the model there. Then it completes each line that you type, up to a line end. An empty line
ends the program. On 2 cores: a minute to learn, then a ms a character.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from common import VOCABULARY, load_source, options
from gpt import CONTEXT, learn

import weft as wf
from weft import models

STOP = ord("\n")


def obtain(path: Path | None, steps: int) -> models.GPT:
    """The model from the file, or a newly trained one."""
    if path is None or not path.exists():
        model = learn(load_source(), steps)
        if path is not None:
            wf.save(model.state_dict(), path)
        return model
    model = models.GPT(VOCABULARY, CONTEXT, layers=3, heads=4, width=128)
    model.load_state_dict(wf.load(path))
    return model.eval()


def typed() -> Iterator[str]:
    """Lines from standard input, until one is empty."""
    while True:
        sys.stdout.write(">>> ")
        sys.stdout.flush()
        line = sys.stdin.readline().rstrip("\n")
        if not line:
            return
        yield line


def complete(
    model: models.GPT, text: str, count: int, temperature: float, generator: wf.Generator
) -> str:
    """The end of the text that fits the model's context, with its completion, which is streamed."""
    seen = ("\n" + text)[-(CONTEXT - count) :]
    ids = wf.tensor([list(seen.encode("ascii", "replace"))])
    ids = ids.clamp(max=VOCABULARY - 1)

    def show(drawn: wf.Tensor) -> None:
        print(chr(int(drawn.item())), end="", flush=True)

    print(text, end="")
    found = model.generate(
        ids, count, temperature, top_p=0.95, stop=STOP, stream=show, generator=generator
    )
    print()
    return "".join(map(chr, found[0].tolist()))


def main(arguments: Sequence[str] | None = None) -> list[str]:
    """Learn, then complete; returns the completed lines."""
    parser = options(__doc__, steps=1000)
    parser.add_argument("--model", type=Path, help="where to keep what was learned")
    parser.add_argument("--prompt", action="append", help="complete this, not what is typed")
    parser.add_argument("--count", type=int, default=40, help="characters at most")
    parser.add_argument("--temperature", type=float, default=0.5, help="0: always the likeliest")
    parser.add_argument("--seed", type=int, default=0, help="of the characters that are drawn")
    chosen = parser.parse_args(arguments)
    if not 0 < chosen.count < CONTEXT:
        parser.error(f"--count: expected 1 to {CONTEXT - 1}, got {chosen.count}")
    wf.manual_seed(0)
    model = obtain(chosen.model, chosen.steps)
    generator = wf.Generator().manual_seed(chosen.seed)
    texts: Iterable[str] = chosen.prompt or typed()
    return [complete(model, x, chosen.count, chosen.temperature, generator) for x in texts]


if __name__ == "__main__":
    main()
