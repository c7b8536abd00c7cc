"""Plans a program in a compiler process: a step as text goes in, a recipe and kernels come out.

So the process that asked goes on running library kernels, and takes no pause for planning.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from weft.codegen.target import Target
from weft.errors import CompileError
from weft.host.deferred import Deferred
from weft.passes.launch import Kernel
from weft.passes.step import Step
from weft.runtime.compilation import compiler, fingerprint
from weft.runtime.compilation.plan_data import Written, packed
from weft.runtime.recipe import dump, recipe_of

if TYPE_CHECKING:
    import json

    from weft.codegen import generator
    from weft.passes import pipeline, step_text
else:  # the process that asks needs none of them, or late
    json = Deferred("json")
    generator, pipeline = Deferred("weft.codegen.generator"), Deferred("weft.passes.pipeline")
    step_text = Deferred("weft.passes.step_text")

MOST: Final = 1 << 20
"""Characters of a step; what is longer, as with large constants, is planned where it is."""


def request(step: Step, threads: int, simplified: bool, target: Target) -> str | None:
    """What `answer` is to be given; `None` if a step has no text, or is too long."""
    content = fingerprint.content(step)
    if content is None or len(text := step_text.format_step(step)) > MOST:
        return None
    return json.dumps({
        "step": text, "content": content, "threads": threads, "simplified": simplified,
        "target": asdict(target),
    })  # fmt: skip


def answer(text: str) -> bytes:
    """The plan of the step of a `request`.

    Raises:
        CompileError: there is no kernel for something, or the step is not what it was.
    """
    head = json.loads(text)
    step, target = step_text.parse_step(head["step"]), Target(**head["target"])
    if fingerprint.content(step) != head["content"]:
        raise CompileError("the step reads differently in another process")
    if not head["simplified"]:
        step = pipeline.optimize(step)
    blueprint = pipeline.plan(step, generator.Generator(target), head["threads"])
    kernels: dict[str, Written] = {}

    def key_of(kernel: Kernel) -> str:
        key = compiler.key_of(kernel, target)
        kernels[key] = Written(key, kernel.name, kernel.ir)
        return key

    recipe = dump(recipe_of(blueprint), key_of)
    if recipe is None:
        raise CompileError("a program with calls of Python has no text")
    return packed(recipe, kernels.values())
