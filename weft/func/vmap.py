"""vmap: turns a function of one example into a function of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from weft.eager.functions.creation.arange import arange
from weft.eager.functions.random.generator import get_rng_state, set_rng_state
from weft.eager.functions.shape.joining import cat
from weft.eager.functions.shape.permutation import movedim
from weft.eager.record.pending.lazy import Drawn, Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.anomaly import check_gradients
from weft.eager.tensor.autograd.tracing import Traced, subgraph_plan
from weft.eager.tensor.dispatch import record
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import rewrite, write
from weft.eager.tensor.view.view import Lens
from weft.eager.tensor.view.view_transform import show
from weft.errors import ArgumentError, OutOfRangeError, ShapeError, TracerError, TreeError
from weft.func.each import Each
from weft.func.front import example, moved, to_front
from weft.func.function import DATA, Arguments, Function, Result, take_apart
from weft.func.ranks.axis import Examples, bound
from weft.func.rule import Given, Mapping
from weft.func.transformed import transformed
from weft.func.tree import Tree, flatten, prefix
from weft.ir.shape import known
from weft.ir.shape import show as listed
from weft.ops.declaration import REGISTRY
from weft.transform.vmap import batch

_BROADCAST: Final = REGISTRY["broadcast_to"]
_SLICE: Final = REGISTRY["slice"]
_UNSAID: Final = object()
_RANDOMNESS: Final = ("different", "same", "error")


def vmap(
    fun: Function, in_axes: Any = 0, out_axes: Any = 0, randomness: str = "error", *,
    in_dims: Any = _UNSAID, out_dims: Any = _UNSAID, chunk_size: int | None = None,
    axis_name: str | None = None,
) -> Function:  # fmt: skip
    """Vectorize `fun` over a batch axis.

    Args:
        in_axes: the batch axis of each argument, `None` for one that all examples share; an integer
            for all, or a sequence with one entry per argument, which may be nested like the
            argument. Keyword arguments are mapped over their first axis, as in JAX.
        out_axes: the batch axis of the results.
        randomness: whether examples draw "different" random numbers or the "same"; by default
            drawing any is an "error".
        in_dims, out_dims: PyTorch's names of `in_axes` and `out_axes`; with them, keyword arguments
            are not mapped, as in PyTorch.
        chunk_size: how many examples to compute at a time, to save memory; all by default.
        axis_name: a name of the batch axis, for collectives such as `psum` inside.

    Raises:
        ArgumentError: `axis_name` with `chunk_size`: collectives need all examples.
        ShapeError: no axis to map over, or axes of different lengths.
        OutOfRangeError: an axis that a result does not have.
        TracerError: the function reads the value of an argument, or draws random numbers although
            that is an "error".
        TreeError: axes that do not fit the arguments, or a result that is no tensor.
        ValueError: another `randomness`.

    >>> import weft as wf
    >>> vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))(wf.ones(3, 2), wf.arange(2.0)).tolist()
    [1.0, 1.0, 1.0]
    """

    if randomness not in _RANDOMNESS:
        raise ArgumentError.here(
            f"vmap: expected randomness {', '.join(_RANDOMNESS)}, got {randomness!r}"
        )
    torch = in_dims is not _UNSAID or out_dims is not _UNSAID
    if axis_name is not None and chunk_size is not None:
        raise ArgumentError.here("vmap: axis_name: expected no chunk_size")
    taken = in_axes if in_dims is _UNSAID else in_dims
    placed = out_axes if out_dims is _UNSAID else out_dims

    @transformed(fun, "vmap")
    def mapped(*args: Any, **kwargs: Any) -> Any:
        apart = take_apart((args, kwargs), numbers=False)
        axes = _axes(taken, args, kwargs, None if torch else 0)
        fronts = [to_front(x, a) for x, a in zip(apart.lazies, axes, strict=True)]
        size = _size(fronts, axes)
        if axis_name is not None:
            each = (0, *(taken if isinstance(taken, tuple | list) else [taken] * len(args)))
            dims: dict[str, Any] = {"in_dims": each, "out_dims": placed} if torch else {}
            indexed = _of_index(fun, axis_name, size)
            inner = vmap(indexed, each, placed, randomness, **dims)
            return inner(arange(size), *args, **kwargs)
        whole = _Examples(apart, axes, fronts, 0, size)
        if chunk_size is None:
            return _call(fun, whole, placed, randomness)
        found: list[Any] = []
        state = get_rng_state()
        for part in whole.chunks(chunk_size):
            if randomness == "same":
                set_rng_state(state)
            found.append(_call(fun, part, placed, randomness))
        return found[0] if len(found) == 1 else _joined(found, placed)

    return mapped


def _of_index(fun: Function, axis_name: str, size: int) -> Function:
    """The function with the index of the example as one more argument, for collectives inside."""

    def inner(index: Any, *args: Any, **kwargs: Any) -> Any:
        with bound({axis_name: Examples(size, index)}):
            return fun(*args, **kwargs)

    return inner


class _Examples(NamedTuple):
    """A chunk of the batch in arguments, with their batch axis, if any, first."""

    apart: Arguments
    axes: Sequence[int | None]
    fronts: Sequence[Lazy]
    begin: int
    end: int

    @property
    def size(self) -> int:
        """The number of examples."""
        return self.end - self.begin

    @property
    def flags(self) -> list[bool]:
        """Which arguments are batched."""
        return [a is not None for a in self.axes]

    def chunks(self, count: int) -> list[_Examples]:
        """Split into chunks of `count` examples, and the rest.

        Raises:
            ShapeError: a count below 1.
        """
        if count < 1:
            raise ShapeError.here(f"vmap: chunk_size: expected 1 or more, got {count}")
        begins = range(0, self.end, count)
        return [self._replace(begin=a, end=min(a + count, self.end)) for a in begins]

    def inputs(self) -> list[Lazy]:
        """The values of these examples; arguments that are not batched as they are now."""
        return [
            (x if like is None else like.lazy) if axis is None else self._part(x)
            for like, x, axis in zip(self.apart.likes, self.fronts, self.axes, strict=True)
        ]

    def given(self) -> list[Given]:
        """These examples of each argument; the argument itself if these are all."""
        rows = zip(self.apart.lazies, self.apart.likes, self.axes, self.inputs(), strict=True)
        return [
            Given(x, like, a)
            if a is None or known(x.type.shape)[a] == self.size
            else Given(part, None, 0)
            for x, like, a, part in rows
        ]

    def _part(self, x: Lazy) -> Lazy:
        shape = known(x.type.shape)
        if self.size == shape[0]:
            return x
        begin, end = (self.begin, *[0] * (len(shape) - 1)), (self.end, *shape[1:])
        return record(_SLICE, (x,), {"begin": begin, "end": end})[0]

    def place(self, i: int) -> Any:
        """These examples of an argument, as a view with the batch axis first."""
        axis = self.axes[i]
        tensor = self.apart.likes[i]
        if axis is None:
            return tensor
        front = movedim(tensor, axis, 0) if axis % tensor.ndim else tensor
        return front if self.size == front.shape[0] else front[self.begin : self.end]


def _joined(parts: Sequence[Any], out_axes: Any) -> Any:
    """The concatenated results of several chunks."""
    columns = [flatten(part)[0] for part in parts]
    tree = flatten(parts[0])[1]
    axes = _places(out_axes, tree)
    rows = zip(axes, *columns, strict=True)
    return tree.build([row[0] if a is None else cat(row, a) for a, *row in rows])


def _axes(
    in_axes: Any, args: Sequence[Any], kwargs: dict[str, Any], named: int | None
) -> list[int | None]:
    """The batch axis of each tensor in the arguments; `named` for those in keyword arguments."""
    if not isinstance(in_axes, int | list | tuple | type(None)):
        raise ShapeError.here(f"vmap: expected in_axes as a number or a tuple, got {in_axes!r}")
    wanted = [in_axes] * len(args) if isinstance(in_axes, int) or in_axes is None else in_axes
    if len(wanted) != len(args):
        raise ShapeError.here(
            f"vmap: expected {len(args)} in_axes, one an argument, got {len(wanted)}"
        )
    found: list[int | None] = []
    for argument, axes in zip([*args, kwargs], [*wanted, named], strict=True):
        part = take_apart(argument, numbers=False)
        entries = prefix(axes, part.tree)
        found += [a for s, a in zip(part.static, entries, strict=True) if s is DATA]
        for x, a in zip(part.static, entries, strict=True):
            if argument is not kwargs and type(x) in (int, float, complex) and a is not None:
                raise ShapeError.here(f"vmap: expected an axis of None for the number {x}, got {a}")
    return found


def _call(fun: Function, examples: _Examples, out_axes: Any, randomness: str) -> Any:
    inputs, flags, size = examples.inputs(), examples.flags, examples.size
    single = examples.apart._replace(
        lazies=tuple([example(x, f) for x, f in zip(inputs, flags, strict=True)])
    )
    mapping = Mapping(examples.given(), size, randomness)
    traced = mapping.trace(fun, single)
    # Numbers drawn before, such as a dropout mask in a backward pass, are the same for all
    # examples.
    draws = any([isinstance(x, Drawn) and x.serial > mapping.since for x in traced.captured])
    if draws and randomness == "error":
        raise TracerError.here(
            "vmap: the function draws random numbers; say randomness='different' or 'same'"
        )
    captured = list(map(mapping.source, traced.captured))
    results = [g.axis is not None for g in captured]
    function = batch(
        traced.function, [*flags, *results], size, fresh_bits=draws and randomness != "same"
    )
    found = trace.now.record(subgraph_plan(function), (*inputs, *[g.value for g in captured]))
    check_gradients(found, only=False)
    result: Result = traced.result
    wanted = _places(out_axes, result.tree)
    _check_static(result.static, wanted)
    places = [a for s, a in zip(result.static, wanted, strict=True) if s is DATA]
    count = len(places)
    ys = [
        _placed(y, mapped, place, size)
        for y, mapped, place in zip(found, function.mapped, places, strict=False)
    ]
    _change(examples, traced, found[count:], function.mapped[count:])
    pairs = zip(result.tensors(ys), result.shown, places, strict=True)
    return result.with_tensors([_itself(examples, *pair) for pair in pairs])


def _check_static(leaves: Sequence[Any], axes: Sequence[Any]) -> None:
    """Check that results that are no tensors have no batch axis.

    Raises:
        TreeError: one has.
    """
    for x, axis in zip(leaves, axes, strict=True):
        if x is not DATA and axis is not None:
            raise TreeError.here(
                f"vmap: expected the function to return tensors, got {type(x).__name__}; make it "
                f"one, or say out_axes=None for it"
            )


def _places(out_axes: Any, tree: Tree) -> list[Any]:
    """The batch axis of each leaf of the result."""
    single = tree.kind is None and isinstance(out_axes, tuple) and len(out_axes) == 1  # pyright: ignore[reportUnknownArgumentType]
    return prefix(out_axes[0] if single else out_axes, tree)


def _change(
    examples: _Examples, traced: Traced, found: Sequence[Lazy], mapped: Sequence[bool]
) -> None:
    """Apply the function's in-place changes of arguments and outside tensors.

    Raises:
        ShapeError: a change that differs between examples, of a tensor that all share.
    """
    written = traced.result.written
    flags = [*[examples.flags[i] for i in written], *[False] * len(traced.changed)]
    if any([m and not f for m, f in zip(mapped, flags, strict=True)]):
        raise ShapeError.here(
            "vmap: a tensor that all examples share cannot be changed in place to what differs "
            "from example to example; map over it, or change a copy"
        )
    values = [
        _placed(y, m, 0, examples.size) if f else y
        for y, m, f in zip(found, mapped, flags, strict=True)
    ]
    for i, y in zip(written, values, strict=False):
        if examples.apart.likes[i] is not None:
            _rewrite(examples, i, y)
    if traced.changed:
        Handle.replace_all(traced.changed, values[len(written) :])


def _rewrite(examples: _Examples, i: int, y: Lazy) -> None:
    """Give an argument its new value, which has the batch axis first."""
    like: Any = examples.apart.likes[i]
    rank, axis, shape = like.ndim, examples.axes[i], known(y.type.shape)
    if axis is None:
        rewrite(like, y, "vmap")
        return
    example = [n for a, n in enumerate(like.shape) if a != axis % rank]
    if example == [*shape[1:]] or examples.size != like.shape[axis]:
        write(examples.place(i), y, "vmap")
        return
    # If the shape changed, the batch axis keeps its position counted from the end.
    at = axis % rank and axis % rank - rank
    rewrite(like, moved(y, 0, at % len(shape)), "vmap")


def _itself(
    examples: _Examples, y: Any, shown: tuple[int | None, Sequence[Lens]], place: int | None
) -> Any:
    """A result: an argument that the function returned as is, or a view of one as a view."""
    i, lenses = shown
    axis = None if i is None else examples.axes[i]
    tensor = None if i is None else examples.apart.likes[i]
    if axis is None or place is None or tensor is None or tensor.shape[axis] != examples.size:
        return y
    if lenses:
        front = tensor if axis % tensor.ndim == 0 else movedim(tensor, axis, 0)
        tensor, axis = show(front, Each(tuple(lenses))), 0
    return tensor if (axis - place) % tensor.ndim == 0 else movedim(tensor, axis, place)


def _size(inputs: Sequence[Lazy], axes: Sequence[int | None]) -> int:
    sizes = {known(x.type.shape)[0] for x, a in zip(inputs, axes, strict=True) if a is not None}
    if len(sizes) != 1:
        text = "none is mapped" if not sizes else f"got lengths {sorted(sizes)}"
        raise ShapeError.here(f"vmap: expected mapped axes of one length, {text}")
    return sizes.pop()


def _placed(y: Lazy, mapped: bool, axis: int | None, size: int) -> Lazy:
    """A result with the batch axis moved to the wanted position."""
    shape = known(y.type.shape)
    if axis is None:
        if mapped:
            raise ShapeError.here(
                "vmap: out_axes is None for a result that differs from example to example"
            )
        return y
    if not mapped:
        y = record(_BROADCAST, (y,), {"shape": (size, *shape)})[0]
        shape = (size, *shape)
    if not -len(shape) <= axis < len(shape):
        raise OutOfRangeError.here(
            f"vmap: expected out_axes from {-len(shape)} to {len(shape) - 1} for a result that is "
            f"{listed(shape)} with the examples in front, got {axis}"
        )
    return moved(y, 0, axis % len(shape))
