"""Styles that redistribute the arguments and results of any module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.distributed.tensor.parallel.style import Forward, ParallelStyle
from weft.distributed.tensor.parallel.weight import check_local
from weft.distributed.tensor.placement import Placement
from weft.distributed.tensor.redistribute import redistribute
from weft.errors import ArgumentError
from weft.nn.module.module import Module
from weft.transport.group import Group

__all__ = ["PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput"]

Layouts = Placement | None | Sequence[Placement | None]


class _Moves:
    """Redistributes values by position from one placement to another; `None` is unchanged."""

    def __init__(self, name: str, what: str, source: Layouts, target: Layouts) -> None:
        self.source, self.target = _listed(source), _listed(target)
        self.what = f"{name}: {what}"
        if len(self.source) != len(self.target):
            raise ArgumentError.here(
                f"{self.what}: expected as many desired layouts as layouts, got "
                f"{len(self.target)} and {len(self.source)}"
            )

    def __call__(self, xs: Sequence[Any], group: Group) -> list[Any]:
        if len(xs) != len(self.source):
            raise ArgumentError.here(
                f"{self.what}: expected {len(self.source)} values, one for each layout, got "
                f"{len(xs)}"
            )
        rows = zip(xs, self.source, self.target, strict=True)
        return [x if a is None or b is None else redistribute(x, a, b, group) for x, a, b in rows]


def _listed(layouts: Layouts) -> list[Placement | None]:
    return list(layouts) if isinstance(layouts, Sequence) else [layouts]


class PrepareModuleInput(ParallelStyle):
    """Redistributes a module's arguments.

    Args:
        input_layouts: the placement of each positional argument; `None` to leave it unchanged.
        desired_input_layouts: the placements that the module needs.
        input_kwarg_layouts: the placements of keyword arguments, by name.
        desired_input_kwarg_layouts: the placements that the module needs.
        use_local_output: must be True; the module gets ordinary tensors.
    """

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        check_local("PrepareModuleInput", use_local_output)
        self._positional = None
        if input_layouts is not None:
            self._positional = _Moves(
                "PrepareModuleInput", "arguments", input_layouts, desired_input_layouts
            )
        self._source = dict(input_kwarg_layouts or {})
        self._target = dict(desired_input_kwarg_layouts or {})
        if self._source.keys() != self._target.keys():
            raise ArgumentError.here(
                "PrepareModuleInput: expected desired layouts of the keyword arguments "
                f"{list(self._source)}, got {list(self._target)}"
            )

    def call(self, module: Module, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """`forward` of the redistributed arguments."""
        if self._positional is not None:
            args = self._positional(args, group)
        moved = dict(kwargs)
        for name, source in self._source.items():
            if name in moved:
                moved[name] = redistribute(moved[name], source, self._target[name], group)
        return forward(*args, **moved)


class PrepareModuleOutput(ParallelStyle):
    """Redistributes a module's results.

    Args:
        output_layouts: the placement of each result; `None` to leave it unchanged.
        desired_output_layouts: the placements that callers need.
        use_local_output: must be True; results are ordinary tensors.
    """

    def __init__(
        self, *, output_layouts: Layouts, desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        check_local("PrepareModuleOutput", use_local_output)
        self._moves = _Moves(
            "PrepareModuleOutput", "results", output_layouts, desired_output_layouts
        )

    def call(self, module: Module, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """The redistributed results of `forward`."""
        y = forward(*args, **kwargs)
        if isinstance(y, tuple | list):
            return type(y)(self._moves(y, group))
        return self._moves([y], group)[0]


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module.

    Args:
        input_layouts, desired_input_layouts: see `PrepareModuleInput`.
        input_kwarg_layouts, desired_input_kwarg_layouts: see `PrepareModuleInput`.
        use_local_input: must be True; the module gets ordinary tensors.
        output_layouts, desired_output_layouts: see `PrepareModuleOutput`.
        use_local_output: must be True; results are ordinary tensors.
    """

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None,
        use_local_input: bool = True, output_layouts: Layouts, desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        self._input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )  # fmt: skip
        self._output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )  # fmt: skip

    def call(self, module: Module, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """`forward`, with its arguments and results redistributed."""

        def inner(*args: Any, **kwargs: Any) -> Any:
            return self._input.call(module, forward, group, args, kwargs)

        return self._output.call(module, inner, group, args, kwargs)
