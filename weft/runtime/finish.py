"""From a specialized step to its program: loaded from disk if it was compiled before.

Only this module of the runtime runs the compiler's stages.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import config
from weft.codegen.target import Target, current
from weft.errors import CompileError
from weft.host.deferred import Deferred
from weft.host.garbage_collection import uncollected
from weft.ir.dtype import as_dtype
from weft.ir.node import Node, TensorType, Value
from weft.ir.printer import format_graph
from weft.passes.blueprint import Blueprint
from weft.passes.group import Group
from weft.passes.launch import Generator, Kernel
from weft.passes.specialize import ValuesNeededError
from weft.passes.step import Request, Step
from weft.passes.zeroed import zeroed
from weft.runtime.compilation import compiler, planner
from weft.runtime.compilation.cache import digest
from weft.runtime.compilation.child import PREFIX, Job
from weft.runtime.compilation.fingerprint import fingerprint
from weft.runtime.compilation.plan_data import unpacked
from weft.runtime.executable import Executable
from weft.runtime.execution import driver
from weft.runtime.execution.processor import FIRST, Processor
from weft.runtime.measurement.stopwatch import Stopwatch
from weft.runtime.memory.pages import LARGE
from weft.runtime.recipe import Recipe, dump, load, recipe_of

if TYPE_CHECKING:
    from weft.codegen import generator
    from weft.passes import partition, pipeline
    from weft.runtime import explanation
else:  # a program that is on disk needs none of them
    generator, pipeline = Deferred("weft.codegen.generator"), Deferred("weft.passes.pipeline")
    partition = Deferred("weft.passes.partition")
    explanation = Deferred("weft.runtime.explanation")

Array = np.ndarray[Any, Any]

SHOW_GRAPHS = 3  # the WEFT_DEBUG level from which compilation is always shown


@uncollected
def finish(
    step: Step, threads: int, fetches: int | None = None, processor: Processor = FIRST,
    simplified: bool = False,
) -> Executable:  # fmt: skip
    """The program of a specialized step.

    Args:
        step: what `weft.passes.specialize` returned.
        threads: how many threads it will run on; results do not depend on it.
        fetches: how many of the step's fetches are returned, if not all.
        processor: where it will run.
        simplified: whether the step is what `weft.passes.pipeline.optimize` returned, or a part.

    Raises:
        CompileError: there is no kernel for something, or LLVM rejected one.
        NoCompilerError: no compiler process is available.
    """
    return begin(step, threads, fetches, processor, simplified).executable()


@uncollected
def begin(
    step: Step, threads: int, fetches: int | None = None, processor: Processor = FIRST,
    simplified: bool = False, beside: bool = False,
) -> Begun:  # fmt: skip
    """`finish` in two steps: everything but waiting for kernels, which other processes compile.

    Args:
        beside: whether other processes are to plan it, too.

    Raises:
        CompileError: there is no kernel for something.
        NoCompilerError: no compiler process is available.
    """
    return Begun(_Job(step, threads, fetches, processor, simplified), beside)


def on_state(
    step: Step, threads: int, fetches: int | None = None, processor: Processor = FIRST,
    simplified: bool = False,
) -> Executable:  # fmt: skip
    """`finish` for a program that runs on a state, which sets large variables to zeros itself."""
    step, variables = zeroed(step, LARGE)
    found = finish(step, threads, fetches, processor, simplified)
    found.zeroed.update(variables)
    return found


def specialized(
    request: Request,
    arrays: Sequence[Array],
    variables: Mapping[str, TensorType],
    decide: Callable[[ValuesNeededError], Mapping[Value, Array]],
) -> Step:
    """The specialized step for such feeds.

    Args:
        variables: types of variables whose declared shape is partly unknown.
        decide: computes the values that shapes depend on, and lets what they depend on act.

    Its further feeds are the results of what has acted, in this order.
    """
    types = [TensorType(as_dtype(a.dtype), a.shape) for a in arrays]
    decided: dict[Value, Array] = {}
    made: dict[Node, tuple[TensorType, ...]] = {}
    while True:
        try:
            return pipeline.specialize(request, types, variables, decided, made)
        except ValuesNeededError as needed:
            decided.update(decide(needed))
            made.update(needed.effects)


def as_it_is(step: Step, threads: int) -> Executable:
    """The program of a simplified step, compiled without the disk cache."""
    blueprint = pipeline.plan(step, generator.Generator(current()), threads)
    return Executable(recipe_of(blueprint), lambda: blueprint, threads)


def of_library_kernels(
    step: Step, threads: int, kernels: Generator, has: Callable[[Group], bool],
    linked: Callable[[], Mapping[Kernel, int]], target: Target, fetches: int | None = None,
) -> Callable[[], Executable]:  # fmt: skip
    """The program of a simplified step whose kernels are there already.

    Args:
        has: which groups of several nodes they compute.
        linked: gives the addresses of the kernels that were asked for.
        target: that they are for; no other is looked for, which would load LLVM.
        fetches: how many of the step's fetches are returned, if not all.

    Raises:
        CompileError: there is no kernel for something.
    """
    blueprint = pipeline.plan(step, kernels, threads, has)
    recipe = recipe_of(blueprint).returning(fetches)
    return lambda: Executable(recipe, lambda: blueprint, threads, target, linked=linked())


def is_kept(step: Step, threads: int) -> bool:
    """Whether the program of a specialized step is on disk."""
    key = _Job(step, threads, None, FIRST, False).key()
    return key is not None and compiler.cache().holds(key)


def partitioned(
    step: Step, device_of: Callable[[Step], Mapping[Node, str]], homes: Mapping[str, str],
    early: bool = True, default: str = "",
) -> tuple[Step, partition.Partition]:  # fmt: skip
    """A specialized step, optimized, and its stages.

    Args:
        device_of: gives the device of each node of the optimized step.
        homes: that of each variable, by key.
        early: as in `weft.passes.partition.partition`.
        default: the device of what asks for none: asking for it and for none is the same, for
            which nodes share a kernel.
    """
    step = pipeline.optimize(step)
    devices = device_of(step)
    plain = partition.asking(step, default)
    pairs = zip(step.graph.nodes, plain.graph.nodes, strict=True)
    stages = {new: devices[old] for old, new in pairs}
    return step, partition.partition(plain, stages, homes, early)


def explained(step: Step, threads: int) -> explanation.Explanation:
    """What the compiler makes of a specialized step, stage by stage; nothing is run."""
    stages = [explanation.Stage("specialized", 0.0, format_graph(step.graph))]

    def watch(name: str, seconds: float, step: Step) -> None:
        stages.append(explanation.Stage(name, seconds, format_graph(step.graph)))

    target = current()
    step = pipeline.optimize(step, watch)
    blueprint = pipeline.plan(step, generator.Generator(target), threads)
    return explanation.Explanation(tuple(stages), blueprint, target)


def planned(text: str) -> bytes:
    """The plan of a step that another process has written.

    Raises:
        CompileError: there is no kernel for something, or the plan cannot be sent.
    """
    step, threads, simplified, target = planner.parsed(text)
    step = step if simplified else pipeline.optimize(step)
    return planner.answer(pipeline.plan(step, generator.Generator(target), threads), target)


class _Job:
    """What `finish` is given, and the machine that it is for."""

    def __init__(
        self, step: Step, threads: int, fetches: int | None, processor: Processor, simplified: bool
    ) -> None:  # fmt: skip
        self.step, self.threads, self.fetches = step, threads, fetches
        self.processor, self.simplified = processor, simplified
        self.watch, self.target = Stopwatch(), current()

    def key(self) -> str | None:
        """The key of the program on disk; `None` if it is not to be kept."""
        if bool(config.get("verify")) or int(config.get("debug")) >= SHOW_GRAPHS:
            return None
        key = fingerprint(self.step, self.threads, self.target)
        if key is None or not self.simplified:
            return key
        return digest(key, "simplified")

    def optimized(self) -> Step:
        """The simplified step."""
        return self.step if self.simplified else pipeline.optimize(self.step)

    def executable(self, recipe: Recipe, whole: Callable[[], Blueprint]) -> Executable:
        """The program of a recipe."""
        recipe = recipe.returning(self.fetches)
        return Executable(recipe, whole, self.threads, self.target, self.watch, self.processor)


class Begun:
    """A program that is planned, or on disk, and whose kernels may still be compiled.

    Args:
        beside: whether a compiler process plans it, if it can be told what.
    """

    def __init__(self, job: _Job, beside: bool) -> None:
        self._job = job
        self._key = job.key()
        job.watch.lap("key")
        data = None if self._key is None else compiler.cache().load(self._key)
        self._is_kept = data is not None
        self._plan = self._asked() if data is None and beside and self._key else None
        if self._plan is not None:
            return
        if data is None:
            self._recipe, self._whole = self._planned()
            return
        self._recipe, self._whole = load(data), functools.cache(self._blueprint)
        job.watch.lap("recipe")

    def _asked(self) -> Job | None:
        """What a compiler process is asked to plan; `None` if it cannot be told."""
        job = self._job
        text = planner.request(job.step, job.threads, job.simplified, job.target)
        if text is None:
            return None
        compiler.demand()
        driver.prestart()
        asked = Job(f"{PREFIX}{self._key}", "", "plan", text, job.target)
        compiler.plan(asked)
        return asked

    def _take(self, plan: Job) -> None:
        """Takes what a compiler process has planned; plans here what it could not."""
        try:
            data, kernels = unpacked(compiler.planned(plan))
        except CompileError:
            self._recipe, self._whole = self._planned()
        else:
            texts = {x.key: Kernel(x.name, x.ir) for x in kernels}
            self._recipe, self._whole = load(data, texts), functools.cache(self._blueprint)
        self._plan = None
        self._job.watch.lap("plan")

    @uncollected
    def executable(self) -> Executable:
        """The program, once its kernels are there.

        Raises:
            CompileError: LLVM rejected a kernel.
            NoCompilerError: no compiler process is available.
        """
        job = self._job
        job.watch.go_on()
        if self._plan is not None:
            self._take(self._plan)
        try:
            found = job.executable(self._recipe, self._whole)
        except CompileError:
            if not self._is_kept:
                raise
            self._recipe, self._whole = self._planned()  # a kernel was evicted
            self._is_kept = False  # Ctrl-C may come before
            found = job.executable(self._recipe, self._whole)
        if not self._is_kept:
            self._keep()
        if int(config.get("debug")) >= 1:
            what = "loaded" if self._is_kept else "compiled"
            print(f"# weft: {what} {found.brief()}; {job.watch}", file=sys.stderr)
        return found

    def _blueprint(self) -> Blueprint:
        job = self._job
        return pipeline.plan(job.optimized(), generator.Generator(job.target), job.threads)

    def _planned(self) -> tuple[Recipe, Callable[[], Blueprint]]:
        """The recipe, once compilers work on its kernels."""
        job = self._job
        compiler.demand()
        driver.prestart()  # with a cold cache, compilers start while we plan
        step = job.optimized()
        if step is not job.step:
            job.watch.lap("passes")

        def announce(kernel: Kernel) -> None:
            compiler.begin(kernel, job.target)

        lower = generator.Generator(job.target)
        blueprint = pipeline.plan(step, lower, job.threads, announce=announce)
        job.watch.lap("lowering")
        return recipe_of(blueprint), lambda: blueprint

    def _keep(self) -> None:
        """Stores the program on disk."""
        if self._key is None:
            return
        key_of = functools.partial(compiler.key_of, target=self._job.target)
        data = dump(self._recipe, key_of)
        if data is not None:
            compiler.cache().store({self._key: data})
            self._job.watch.lap("keeping")
