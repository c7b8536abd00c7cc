"""Tensors as text, laid out as PyTorch does."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.eager.record.call.placed_type import device_of
from weft.eager.record.call.placed_type import shown as device_shown
from weft.eager.record.pending.lazy import Array, Lazy
from weft.eager.record.pending.state import needs_gradient, trace
from weft.eager.tensor.autograd.grad_fn import Node, node_of
from weft.eager.tensor.dtype import promotion
from weft.eager.tensor.handle import Handle
from weft.errors import ConfigError, DTypeError, GradientError, TracerError
from weft.ir.dtype import bool_, int64
from weft.ir.shape import known, show


@dataclass(frozen=True)
class Options:
    """How tensors are printed; see `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES: Final = {
    "default": Options(),
    "short": Options(precision=2, edgeitems=2),
    "full": Options(threshold=math.inf),
}
_options: list[Options] = [Options()]


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Set how tensors are printed.

    Args:
        precision: digits after the point (4).
        threshold: tensors with more elements are summarized (1000),
        edgeitems: to so many items at each end of a dimension (3).
        linewidth: characters in a line (80).
        profile: `"default"`, `"short"` or `"full"`: the base for the other arguments.
        sci_mode: whether to use scientific notation; by default if needed.

    Raises:
        ConfigError: an unknown profile.
    """
    if profile is not None and profile not in _PROFILES:
        expected = ", ".join(_PROFILES)
        raise ConfigError(f"set_printoptions: expected a profile of {expected}, got {profile!r}")
    base = _options[0] if profile is None else _PROFILES[profile]
    given = {
        "precision": precision, "threshold": threshold, "edgeitems": edgeitems,
        "linewidth": linewidth,
    }  # fmt: skip
    chosen: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    _options[0] = dataclasses.replace(base, **chosen, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """How tensors are printed, as arguments for `set_printoptions`."""
    return dataclasses.asdict(_options[0])


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Print tensors differently inside; arguments as for `set_printoptions`.

    >>> import weft as wf
    >>> with wf.printoptions(precision=1):
    ...     print(wf.tensor([0.25]))
    tensor([0.2])
    """
    before = _options[0]
    set_printoptions(**options)
    try:
        yield
    finally:
        _options[0] = before


class _Format:
    """How one element is written, so that all take the same width."""

    def __init__(self, array: Array, options: Options) -> None:
        self.digits = options.precision
        self.floats = array.dtype.kind not in "biu"
        self.whole = True  # all numbers are integers: written with a point and no digits after it
        self.powers = False
        self.width = 1
        values: list[Any] = array.reshape(-1).tolist()
        self.parts: list[_Format] = []
        if array.dtype.kind == "c":
            self.parts = [_Format(array.real, options), _Format(array.imag, options)]
        elif self.floats:
            values = [v for v in values if math.isfinite(v) and v != 0]
            self._choose([abs(v) for v in values], options.sci_mode)
        self.width = max([1, *[len(self._text(v)) for v in values]])

    def _choose(self, sizes: list[float], sci_mode: bool | None) -> None:
        if not sizes:
            return
        least, most = min(sizes), max(sizes)
        self.whole = all([v == math.ceil(v) for v in sizes])
        self.powers = most / least > 1000 or most > 1e8 or (not self.whole and least < 1e-4)
        if sci_mode is not None:
            self.powers = sci_mode

    def _text(self, value: Any) -> str:
        if not self.floats:
            return str(value)
        if self.parts:
            real, imaginary = self.parts
            behind = imaginary._text(value.imag)
            sign = "" if behind.startswith("-") else "+"
            return f"{real._text(value.real)}{sign}{behind}j"
        if self.powers:
            return f"{value:.{self.digits}e}"
        if self.whole:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{self.digits}f}"

    def __call__(self, value: Any) -> str:
        return self._text(value).rjust(self.width)


def text_of(array: Array, indent: int = 0) -> str:
    """The elements of an array, in nested brackets; summarized if there are many."""
    options = _options[0]
    short = array.size > options.threshold
    shown = _edges(array, options.edgeitems) if short else array
    return _nested(array, indent, _Format(shown, options), options, short)


def _edges(array: Array, count: int) -> Array:
    """The elements that a summarized text shows."""
    for axis, size in enumerate(array.shape):
        if size > 2 * count:
            array = np.take(array, [*range(count), *range(size - count, size)], axis)
    return array


def _nested(array: Array, indent: int, form: _Format, options: Options, short: bool) -> str:
    if array.ndim == 0:
        return form(array.item())
    parts: list[Any] = list(range(len(array)))
    if short and len(array) > 2 * options.edgeitems:
        parts = [*parts[: options.edgeitems], None, *parts[len(parts) - options.edgeitems :]]
    if array.ndim == 1:
        return _line(array, parts, indent, form, options)
    inner = [
        "..." if i is None else _nested(array[i], indent + 1, form, options, short) for i in parts
    ]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(inner) + "]"


def _line(array: Array, parts: list[Any], indent: int, form: _Format, options: Options) -> str:
    values: list[Any] = array.tolist()
    texts = [" ..." if i is None else form(values[i]) for i in parts]
    count = max(1, (options.linewidth - indent) // (form.width + 2))
    lines = [", ".join(texts[i : i + count]) for i in range(0, len(texts), count)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _with_notes(text: str, notes: list[str], indent: int) -> str:
    """The text with its suffixes, on the last line as far as they fit."""
    width = _options[0].linewidth
    used = len(text) - text.rfind("\n") + 1
    for note in notes:
        if used + len(note) + 2 > width:
            text += ",\n" + " " * indent + note
            used = indent + len(note)
        else:
            text += ", " + note
            used += len(note) + 2
    return text + ")"


def _notes(lazy: Lazy) -> list[str]:
    kind = lazy.type
    shape = known(kind.shape)
    notes: list[str] = []
    if 0 in shape and len(shape) > 1:
        notes.append(f"size={show(shape)}")
    usual = promotion.get_default_dtype()
    looks = [] if 0 in shape else [promotion.complex_of(usual), int64, bool_]
    evident = [usual, *looks]
    if kind.dtype not in evident:
        notes.append(f"dtype={kind.dtype!r}")
    device = device_of(kind)
    if device:
        notes.insert(0, f"device='{device_shown(device)}'")
    if needs_gradient(lazy):
        leaf = lazy.leaf is not None
        notes.append("requires_grad=True" if leaf else f"grad_fn={node_of(lazy)}")
    return notes + _tangents(lazy)


def _tangents(lazy: Lazy) -> list[str]:
    """The suffixes for the tangents of a dual tensor, one for each level."""
    try:
        found = [level.tangent(lazy) for level in trace.now.duals] if lazy.tracked else []
    except GradientError:  # its graph has been freed
        return ["tangent=?"]
    return [f"tangent={t}" for t in found if t is not None]


class Printing(Handle):
    """Tensors as text."""

    __slots__ = ()

    def __repr__(self) -> str:
        lazy = self.lazy
        kind = type(self)
        prefix = f"{kind.__name__ if getattr(kind, 'overrides_functions', False) else 'tensor'}("
        try:
            array = self.array
        except TracerError:  # it has no value yet
            return f"{prefix}<{lazy.type} of a function being traced>)"
        text = "[]" if array.size == 0 else text_of(array, len(prefix))
        return _with_notes(prefix + text, _notes(lazy), len(prefix))

    def __format__(self, spec: str) -> str:
        if not self.lazy.type.shape:
            return format(self.array.item(), spec)
        if spec:
            raise DTypeError.here(
                f"format: {spec!r} is for a number, not for a tensor of shape "
                f"{show(self.lazy.type.shape)}; print it with set_printoptions()"
            )
        return str(self)

    @property
    def output_nr(self) -> int:
        """Its index among the results of its `grad_fn`."""
        lazy = self.lazy
        return lazy.index if lazy.tracked and lazy.leaf is None else 0

    @property
    def grad_fn(self) -> Node | None:
        """The autograd node that computed it; `None` without gradients."""
        lazy = self.lazy
        return node_of(lazy) if lazy.leaf is None and needs_gradient(lazy) else None
