"""`pipeline`: splits a model whose modules are called one after another into stages."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from weft.distributed.pipelining.stage import PipelineStage
from weft.eager.record.pending.mode import no_grad
from weft.errors import ArgumentError
from weft.nn.module.module import Module
from weft.transport.group import Group

__all__ = ["Pipe", "SplitPoint", "pipeline"]


class SplitPoint(Enum):
    """Where a stage starts: before a module, or after it."""

    BEGINNING = 1
    END = 2


class _Link(NamedTuple):
    """A module that is called once, with the result of the previous one."""

    path: str
    module: Module
    args: tuple[Any, ...]


class _Chain(Module):
    """Modules called one after another, with their names in the whole model."""

    def __init__(self, links: list[_Link]) -> None:
        super().__init__()
        for link in links:
            *outer, name = link.path.split(".")
            place: Any = self
            for part in outer:
                inner = place._modules.get(part)
                if inner is None:
                    inner = Module()
                    place.add_module(part, inner)
                place = inner
            place.add_module(name, link.module)
        self._paths = [link.path for link in links]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The last module's result."""
        for path in self._paths:
            y = self.get_submodule(path)(*args, **kwargs)
            args, kwargs = y if isinstance(y, tuple) else (y,), {}
        return args if len(args) != 1 else args[0]


class Pipe:
    """A model in stages; see `pipeline`.

    Args:
        stages: the modules of the stages.

    Attributes:
        num_stages: the number of stages.
    """

    def __init__(self, stages: list[Module]) -> None:
        self._stages = stages
        self.num_stages = len(stages)

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of one stage; its parameters have the names of the whole model's.

        Raises:
            ArgumentError: there is no such stage.
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ArgumentError.here(
                f"get_stage_module: expected a stage from 0 to {self.num_stages - 1}, got "
                f"{stage_idx}"
            )
        return self._stages[stage_idx]

    def build_stage(
        self, stage_index: int, device: Any = None, group: Group | None = None
    ) -> PipelineStage:
        """One stage, for the calling rank.

        Args:
            stage_index: from 0.
            device: has no effect.
            group: the ranks of the pipeline; by default all.
        """
        module = self.get_stage_module(stage_index)
        return PipelineStage(module, stage_index, self.num_stages, device, group)


def pipeline(
    module: Module, mb_args: tuple[Any, ...], mb_kwargs: Mapping[str, Any] | None = None,
    split_spec: Mapping[str, SplitPoint] | None = None,
) -> Pipe:  # fmt: skip
    """Split a model into stages, before or after the modules that `split_spec` names.

    Stages have the model's own modules. Up to each split, modules must be called one after another,
    each once and with no computation in between; this function calls the model once to check it.

    Args:
        module: the model.
        mb_args, mb_kwargs: arguments like those of one micro-batch.
        split_spec: where to split, by the names of `named_modules()`; by default nowhere.

    Raises:
        ArgumentError: a name of no module, or a model that does not just call modules one after
            another.

    Example:
        >>> import weft as wf
        >>> from weft.distributed.pipelining import SplitPoint, pipeline
        >>> net = wf.nn.Sequential(wf.nn.Linear(2, 3), wf.nn.ReLU(), wf.nn.Linear(3, 1))
        >>> pipe = pipeline(net, (wf.ones(1, 2),), split_spec={"2": SplitPoint.BEGINNING})
        >>> pipe.num_stages, [name for name, _ in pipe.get_stage_module(1).named_parameters()]
        (2, ['2.weight', '2.bias'])
    """
    spec = dict(split_spec or {})
    links = [_Link("", module, mb_args)]
    if spec:
        links = _links("", module, mb_args, dict(mb_kwargs or {}), spec)
    stages: list[list[_Link]] = [[]]
    for link in links:
        at = spec.get(link.path)
        if at is SplitPoint.BEGINNING and stages[-1]:
            stages.append([])
        stages[-1].append(link)
        if at is SplitPoint.END:
            stages.append([])
    if not spec:
        return Pipe([module])
    modules: list[Module] = [_Chain(each) for each in stages if each]
    _check_untied(modules)
    return Pipe(modules)


def _check_untied(stages: list[Module]) -> None:
    """Check that no two stages share a parameter, of whose gradient each would have a part.

    Raises:
        ArgumentError: names it.
    """
    seen: dict[int, str] = {}
    for stage in stages:
        own = dict(stage.named_parameters())
        for name, p in own.items():
            if id(p) in seen:
                raise ArgumentError.here(
                    f"pipeline: expected stages without a parameter in common, got {name}, which "
                    f"is {seen[id(p)]} of a stage before"
                )
        seen |= {id(p): name for name, p in own.items()}


def _links(
    prefix: str, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any],
    spec: Mapping[str, SplitPoint],
) -> list[_Link]:  # fmt: skip
    """The modules that are called one after another, down to the split points."""
    links: list[_Link] = []
    chain = _called(prefix, module, args, kwargs)
    names = {link.path for link in chain}
    wrong = [n for n in spec if n.startswith(prefix) and _first(n, prefix) not in names]
    if wrong:
        raise ArgumentError.here(
            f"pipeline: split_spec: expected names of modules among {', '.join(sorted(names))} or "
            f"inside of them, got {wrong[0]!r}"
        )
    for link in chain:
        inside = link.path + "."
        cut = any(name.startswith(inside) for name in spec)
        links += _links(inside, link.module, link.args, {}, spec) if cut else [link]
    return links


def _first(name: str, prefix: str) -> str:
    return prefix + name[len(prefix) :].split(".")[0]


def _called(
    prefix: str, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[_Link]:
    """The children of a module in the order in which it calls them.

    Raises:
        ArgumentError: it does more than call them one after another.
    """
    links: list[_Link] = []
    outputs: list[Any] = []
    handles: list[Any] = []
    for name, child in module.named_children():

        def told(m: Module, taken: Any, y: Any, path: str = prefix + name) -> None:
            links.append(_Link(path, m, tuple(taken)))
            outputs.append(y)

        handles.append(child.register_forward_hook(told))
    try:
        with no_grad():
            result = module(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    _check_chain(prefix, links, outputs, args, result)
    return links


def _check_chain(
    prefix: str, links: list[_Link], outputs: list[Any], args: tuple[Any, ...], result: Any
) -> None:
    inputs = [args, *[y if isinstance(y, tuple) else (y,) for y in outputs]]
    taken = [*[link.args for link in links], result if isinstance(result, tuple) else (result,)]
    names = ["its beginning", *[link.path for link in links], "its end"]
    for i, (a, b) in enumerate(zip(inputs, taken, strict=True)):
        if len(a) != len(b) or any(x is not y for x, y in zip(a, b, strict=True)):
            raise ArgumentError.here(
                f"pipeline: expected {prefix[:-1] or 'the model'} to call its modules one after "
                f"another, but between {names[i]} and {names[i + 1]} it does something else; make "
                f"that a module, or build stages by hand with PipelineStage"
            )
    twice = [link.path for i, link in enumerate(links) if link.path in names[1 : i + 1]]
    if twice or not links:
        what = f"{twice[0]} twice" if twice else "none"
        raise ArgumentError.here(
            f"pipeline: expected {prefix[:-1] or 'the model'} to call each of its modules once, "
            f"got {what}"
        )
