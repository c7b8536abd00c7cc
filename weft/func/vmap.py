"""vmap: a function of one example as a function of many."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from weft.eager.call import record, wrap
from weft.eager.handle import Handle
from weft.eager.lazy import Drawn, Lazy, trace
from weft.eager.movement import cat
from weft.eager.plan import intern
from weft.eager.tracing import subgraph_plan
from weft.errors import OutOfRangeError, ShapeError, TracerError
from weft.func.function import DATA, Arguments, Function, take_apart, trace_function
from weft.func.tree import flatten, prefix
from weft.ir.shape import known, show
from weft.ops.base import REGISTRY, at_user_line
from weft.transform.vmap import batch

_TRANSPOSE: Final = REGISTRY["transpose"]
_BROADCAST: Final = REGISTRY["broadcast_to"]
_RANDOMNESS: Final = ("different", "same", "error")


def vmap(
    fun: Function,
    in_axes: Any = 0,
    out_axes: Any = 0,
    randomness: str = "different",
    *,
    in_dims: Any = 0,
    out_dims: Any = 0,
    chunk_size: int | None = None,
) -> Function:
    """`fun` for many examples at once, without a loop.

    Args:
        in_axes: the axis of each argument that counts examples, `None` for one that they share; an
            integer for all, or a sequence with one entry an argument, each of which may be nested
            like the argument.
        out_axes: where the results have that axis.
        randomness: whether examples draw "different" random numbers, or the "same"; or "error",
            where drawing any is refused.
        in_dims, out_dims: PyTorch's names of `in_axes` and `out_axes`.
        chunk_size: how many examples are computed at a time, to save memory; all by default.

    Raises:
        ShapeError: no axis to map over, or of different lengths.
        OutOfRangeError: an axis that a result does not have.
        TracerError: the function looks at the value of an argument, or draws random numbers where
            that is refused.
        ValueError: another `randomness`.

    >>> import weft as wf
    >>> vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))(wf.ones(3, 2), wf.arange(2.0)).tolist()
    [1.0, 1.0, 1.0]
    """

    if randomness not in _RANDOMNESS:
        raise ValueError(
            f"vmap: expected randomness {', '.join(_RANDOMNESS)}, got {randomness!r}"
            f"{at_user_line()}"
        )
    taken = in_axes if in_dims == 0 else in_dims
    placed = out_axes if out_dims == 0 else out_dims

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        apart = take_apart((args, kwargs), numbers=False)
        axes = _axes(taken, args, kwargs)
        inputs = [_to_front(x, a) for x, a in zip(apart.lazies, axes, strict=True)]
        flags = [a is not None for a in axes]
        whole = _Examples(apart, inputs, flags, _size(inputs, axes))
        parts = [whole] if chunk_size is None else whole.chunks(chunk_size)
        found = [_call(fun, part, placed, randomness) for part in parts]
        return found[0] if len(found) == 1 else _joined(found, placed)

    return mapped


class _Examples(NamedTuple):
    """Arguments with the axis of examples, where they have one, in front."""

    apart: Arguments
    inputs: Sequence[Lazy]
    flags: Sequence[bool]
    size: int

    def chunks(self, count: int) -> list[_Examples]:
        """The same, `count` examples each, and the rest.

        Raises:
            ShapeError: a count below 1.
        """
        if count < 1:
            raise ShapeError(f"vmap: chunk_size: expected 1 or more, got {count}{at_user_line()}")
        return [self._part(a, min(a + count, self.size)) for a in range(0, self.size, count)]

    def _part(self, begin: int, end: int) -> _Examples:
        return self._replace(
            inputs=[
                wrap(x)[begin:end].lazy if f else x
                for x, f in zip(self.inputs, self.flags, strict=True)
            ],
            size=end - begin,
        )


def _joined(parts: Sequence[Any], out_axes: Any) -> Any:
    """The results of several chunks of examples as one."""
    columns = [flatten(part)[0] for part in parts]
    tree = flatten(parts[0])[1]
    axes = prefix(out_axes, tree)
    rows = zip(axes, *columns, strict=True)
    return tree.build(
        [row[0] if a is None or not isinstance(row[0], Handle) else cat(row, a) for a, *row in rows]
    )


def _axes(in_axes: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[int | None]:
    """An axis for each tensor in the arguments; keyword arguments are mapped over axis 0."""
    if not isinstance(in_axes, int | list | tuple | type(None)):
        raise ShapeError(
            f"vmap: expected in_axes as a number or a tuple, got {in_axes!r}{at_user_line()}"
        )
    wanted = [in_axes] * len(args) if isinstance(in_axes, int) or in_axes is None else in_axes
    if len(wanted) != len(args):
        raise ShapeError(
            f"vmap: expected {len(args)} in_axes, one an argument, got {len(wanted)}"
            f"{at_user_line()}"
        )
    found: list[int | None] = []
    for argument, axes in zip([*args, kwargs], [*wanted, 0], strict=True):
        part = take_apart(argument, numbers=False)
        entries = prefix(axes, part.tree)
        found += [a for s, a in zip(part.static, entries, strict=True) if s is DATA]
        for x, a in zip(part.static, entries, strict=True):
            if type(x) in (int, float, complex) and a is not None:
                text = f"vmap: expected an axis of None for the number {x}, got {a}"
                raise ShapeError(text + at_user_line())
    return found


def _call(fun: Function, examples: _Examples, out_axes: Any, randomness: str) -> Any:
    apart, inputs, flags, size = examples
    single = apart._replace(
        lazies=tuple([_example(x, f) for x, f in zip(inputs, flags, strict=True)])
    )
    traced = trace_function(fun, single)
    if traced.changed:
        raise TracerError(
            f"vmap: expected a function without effects, but it changes a tensor in place that it "
            f"was not given{at_user_line()}"
        )
    if randomness == "error" and any([isinstance(x, Drawn) for x in traced.captured]):
        raise TracerError(
            "vmap: the function draws random numbers; say randomness='different' or 'same'"
            f"{at_user_line()}"
        )
    shared = [False] * len(traced.captured)
    function = batch(traced.function, [*flags, *shared], size, fresh_bits=randomness != "same")
    found = trace.now.record(subgraph_plan(function), (*inputs, *traced.captured))
    tree = traced.result.tree
    wanted = iter(prefix(out_axes, tree))
    places = [a for s, a in zip(traced.result.static, wanted, strict=True) if s is DATA]
    results = [
        _placed(y, mapped, place, size)
        for y, mapped, place in zip(found, function.mapped, places, strict=True)
    ]
    return traced.result.rebuilt(results)


def _size(inputs: Sequence[Lazy], axes: Sequence[int | None]) -> int:
    sizes = {known(x.type.shape)[0] for x, a in zip(inputs, axes, strict=True) if a is not None}
    if len(sizes) != 1:
        text = "none is mapped" if not sizes else f"got lengths {sorted(sizes)}"
        raise ShapeError(f"vmap: expected mapped axes of one length, {text}{at_user_line()}")
    return sizes.pop()


def _to_front(x: Lazy, axis: int | None) -> Lazy:
    if axis is None:
        return x
    rank = len(known(x.type.shape))
    if not -rank <= axis < rank:
        raise ShapeError(
            f"vmap: expected an axis of a tensor of shape {show(x.type.shape)}, got {axis}"
            f"{at_user_line()}"
        )
    return _moved(x, axis % rank, 0)


def _moved(x: Lazy, source: int, target: int) -> Lazy:
    rank = len(known(x.type.shape))
    if source == target:
        return x
    order = [i for i in range(rank) if i != source]
    order.insert(target, source)
    return record(_TRANSPOSE, (x,), {"perm": tuple(order)})[0]


def _placed(y: Lazy, mapped: bool, axis: int | None, size: int) -> Lazy:
    """A result with the axis of examples where it is wanted."""
    shape = known(y.type.shape)
    if axis is None:
        if mapped:
            raise ShapeError(
                f"vmap: out_axes is None for a result that differs from example to example"
                f"{at_user_line()}"
            )
        return y
    if not mapped:
        y = record(_BROADCAST, (y,), {"shape": (size, *shape)})[0]
        shape = (size, *shape)
    if not -len(shape) <= axis < len(shape):
        raise OutOfRangeError(
            f"vmap: expected out_axes from {-len(shape)} to {len(shape) - 1} for a result that is "
            f"{show(shape)} with the examples in front, got {axis}{at_user_line()}"
        )
    return _moved(y, 0, axis % len(shape))


def _example(x: Lazy, mapped: bool) -> Lazy:
    """Something of the type of one example."""
    if not mapped:
        return x
    return Lazy(intern(x.type.dtype, known(x.type.shape)[1:]), None, 0, False)
