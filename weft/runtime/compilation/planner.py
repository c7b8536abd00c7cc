"""Programs that a compiler process plans: a step as text goes in, a recipe and kernels come out.

So the process that asks goes on running library kernels, and takes no pause for planning.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.codegen.target import Target
from weft.errors import CompileError
from weft.host.deferred import Deferred
from weft.passes.blueprint import Blueprint
from weft.passes.launch import Kernel
from weft.passes.step import Step
from weft.runtime.compilation import compiler, fingerprint
from weft.runtime.compilation.plan_data import Written, packed
from weft.runtime.recipe import dump, recipe_of

if TYPE_CHECKING:
    import json

    from weft.passes import step_text
else:  # they are needed late
    json, step_text = Deferred("json"), Deferred("weft.passes.step_text")

MOST: Final = 1 << 20
"""Characters of a step; what is longer, as with large constants, is planned where it is."""


class Asked(NamedTuple):
    """What is to be planned: see `weft.runtime.finish.finish`."""

    step: Step
    threads: int
    simplified: bool
    target: Target


def request(step: Step, threads: int, simplified: bool, target: Target) -> str | None:
    """A step as text, for `parsed`; `None` if it has none, or a long one."""
    content = fingerprint.content(step)
    if content is None or len(text := step_text.format_step(step)) > MOST:
        return None
    return json.dumps({
        "step": text, "content": content, "threads": threads, "simplified": simplified,
        "target": asdict(target),
    })  # fmt: skip


def parsed(text: str) -> Asked:
    """What `request` was given.

    Raises:
        CompileError: the step is not what it was.
    """
    head = json.loads(text)
    step, target = step_text.parse_step(head["step"]), Target(**head["target"])
    if fingerprint.content(step) != head["content"]:
        raise CompileError("the step reads differently in another process")
    return Asked(step, head["threads"], head["simplified"], target)


def answer(blueprint: Blueprint, target: Target) -> bytes:
    """A plan for the process that asked.

    Raises:
        CompileError: it cannot be sent.
    """
    kernels: dict[str, Written] = {}

    def key_of(kernel: Kernel) -> str:
        key = compiler.key_of(kernel, target)
        kernels[key] = Written(key, kernel.name, kernel.ir)
        return key

    recipe = dump(recipe_of(blueprint), key_of)
    if recipe is None:
        raise CompileError("a program with calls of Python has no text")
    return packed(recipe, kernels.values())
