"""Arguments of random calls: mostly as a parameter's name suggests, sometimes anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

T = TypeVar("T")
Array = np.ndarray[Any, Any]
Make = Callable[["Front"], Any]
SIZES = (0, 1, 1, 2, 2, 3, 3, 3, 4, 5, 8, 17)
LARGEST = 5000  # elements of a random tensor
DTYPES = (
    "float32", "float32", "float32", "float64", "int64", "int32", "bool", "float16", "bfloat16",
    "int8", "int16", "uint8", "complex64", "complex128",
)  # fmt: skip
LAYOUTS = ("plain", "plain", "plain", "transposed", "strided", "expanded", "flipped")
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, -1e38, 1e-37, 1e-40, -1e-44)
INTEGERS = (
    -1, -2, -7, 0, 1, 2, 10_000, 2**31 - 1, 2**31, -(2**31) - 1, 2**40, 2**62, 2**63 - 1, 2**63,
    -(2**63), 2**64, 10**30,
)  # fmt: skip
NUMBERS = (0.0, -0.0, 0.5, -1.5, 1e-300, 1e300, np.nan, np.inf, -np.inf, 2.0**63)
TEXTS = (
    "", "mean", "sum", "none", "max", "same", "valid", "reflect", "bilinear", "ij,jk->ik", "i->ii",
    "...", "nonsense", "\0", "é" * 40, "float32", "fro", "nuc", "tanh",
)  # fmt: skip
SHAPES = (
    (), (0,), (1,), (2, 3), (3,), (-1,), (2, -1), (-1, -1), (-5,), (0, 2**62), (2**31,), (2**40,),
    (2**62, 4), (2**31, 2**31), (1,) * 40, (1.5,), (None,), ("3",), (True,),
)  # fmt: skip
DIMS = (0, 0, 0, 1, -1, -1, 2, 5, -7, (0, 1), (0, 0), (-1, 0), (), None, 2**40)


@dataclass(frozen=True)
class Front:
    """How a front end makes values from arrays, and dtypes from names."""

    tensor: Callable[[Array, str], Any]
    dtype: Callable[[str], Any]


@dataclass(frozen=True)
class Drawn:
    """A value: its source text, and how to make a new one each time."""

    text: str
    make: Make


def just(value: Any) -> Drawn:
    """A value that no call changes."""
    return Drawn(repr(value), lambda _: value)


class Draw:
    """Random values."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.shape = self._shape()  # mostly shared by the tensors of one call
        self.width = self.pick((1, 2, 3, 4, 8))  # and what sizes of layers do
        self.fitting = self.chance(0.4)  # tensors are alike, at most one argument is hostile
        self.kind = self.pick(("float32", "float64"))

    def pick(self, options: Sequence[T]) -> T:
        """One of these."""
        return options[int(self.random.integers(len(options)))]

    def point(self) -> int:
        """A random 32-bit integer."""
        return int(self.random.integers(1 << 32))

    def chance(self, share: float) -> bool:
        """True once in `n` cases."""
        return bool(self.random.random() < share)

    def _shape(self) -> tuple[int, ...]:
        shape = tuple(int(n) for n in self.random.choice(SIZES, int(self.random.integers(0, 5))))
        return shape if np.prod(shape, dtype=int) <= LARGEST else shape[:2]

    def tensor(self) -> Drawn:
        """A tensor of the call's shape, or one that broadcasts, or any shape."""
        shape, kind = self.shape, self.pick(DTYPES if self.chance(0.3) else DTYPES[:5])
        if self.fitting:
            kind = self.kind
        elif self.chance(0.35):
            shape = self._shape() if self.chance(0.6) else shape[1:]
        array, layout = self.array(shape, kind), self.pick(LAYOUTS)
        tracked = self.chance(0.3)

        def make(front: Front) -> Any:
            made = front.tensor(array.copy(), layout)
            if tracked and hasattr(made, "requires_grad_") and made.is_floating_point():
                made.requires_grad_()
            return made

        needs = ", requires_grad" if tracked else ""
        return Drawn(f"<{kind}{list(shape)} {layout}{needs}>", make)

    def array(self, shape: tuple[int, ...], kind: str) -> Array:
        """Numbers; some are special values, if the dtype has any."""
        dtype = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
        if dtype.kind in "biu":
            low, high = (0, 2) if dtype.kind == "b" else (-3 if dtype.kind == "i" else 0, 4)
            numbers: Array = np.asarray(self.random.integers(low, high, shape))
            if self.chance(0.15) and dtype.kind != "b":
                limits = np.iinfo(str(dtype))
                numbers = np.asarray(self.random.choice([limits.min, limits.max, 0, 1], shape))
            return numbers.astype(dtype)
        numbers = np.asarray(self.random.normal(0, 2, shape))
        if self.chance(0.2):
            special = self.random.choice(SPECIAL, shape)
            numbers = np.where(self.random.random(shape) < 0.3, special, numbers)
        with np.errstate(all="ignore"):
            return np.asarray(numbers).astype(dtype)

    def hostile(self) -> Drawn:
        """Any value."""
        return self.pick(HOSTILE)(self)

    def named(self, name: str) -> Drawn:
        """A value that a parameter of this name may expect."""
        for pattern, draw in BY_NAME:
            if re.fullmatch(pattern, name):
                return draw(self)
        return self.tensor()

    def several(self) -> Drawn:
        """A list of tensors."""
        parts = [self.tensor() for _ in range(int(self.random.integers(0, 4)))]
        text = "[" + ", ".join(part.text for part in parts) + "]"
        return Drawn(text, lambda front: [part.make(front) for part in parts])

    def size(self) -> Drawn:
        """A small integer, such as a layer's width."""
        if self.chance(0.8):
            return just(self.width)
        return just(self.pick((1, 2, 2, 3, 3, 4, 5, 8, 17)))

    def lengths(self) -> Drawn:
        """A small integer, or several."""
        if self.chance(0.6):
            return just(self.pick((0, 1, 1, 2, 3, 4, -1)))
        count = int(self.random.integers(1, 4))
        return just(tuple(int(n) for n in self.random.integers(0, 4, count)))

    def indices(self) -> Drawn:
        """Integers, most of which are valid indices of a small tensor."""
        shape = self.shape if self.chance(0.5) else (int(self.random.integers(0, 4)),)
        array = np.asarray(self.random.integers(-1 if self.chance(0.2) else 0, 3, shape))
        return Drawn(f"<int64{list(shape)} indices>", lambda front: front.tensor(array, "plain"))

    def dtype(self) -> Drawn:
        """A dtype."""
        name = self.pick(DTYPES)
        return Drawn(name, lambda front: front.dtype(name))

    def foreign(self) -> Drawn:
        """A NumPy array that few functions accept."""
        kind = self.pick((">f4", "object", "U3", "datetime64[s]", "float32", "uint64", "f4,i4"))
        return Drawn(f"np.zeros((2, 3), {kind!r})", lambda _: np.zeros((2, 3), kind)[::-1])

    def thing(self) -> Drawn:
        """An object that most functions reject."""
        return self.pick(THINGS)


def _raises(*_: Any, **__: Any) -> Any:
    raise LookupError("what the user's function raises")


THINGS = (
    Drawn("object()", lambda _: object()),
    Drawn("[]", lambda _: []),
    Drawn("{}", lambda _: {}),
    Drawn("[[1], [2, 3]]", lambda _: [[1], [2, 3]]),
    Drawn("b'ab'", lambda _: b"ab"),
    Drawn("(x for x in 'ab')", lambda _: (x for x in "ab")),
    Drawn("lambda *x: x", lambda _: lambda *x: x),
    Drawn("raises", lambda _: _raises),
    Drawn("int", lambda _: int),
    just(1j),
    just(...),
    just(slice(None, None, -1)),
    just(None),
    just({"a": 1}),
)
HOSTILE: tuple[Callable[[Draw], Drawn], ...] = (
    lambda d: just(d.pick(INTEGERS)),
    lambda d: just(d.pick(INTEGERS)),
    lambda d: just(d.pick(NUMBERS)),
    lambda d: just(d.pick(TEXTS)),
    lambda d: just(d.pick(SHAPES)),
    lambda d: just(d.pick(DIMS)),
    lambda d: just(d.pick((True, False))),
    Draw.tensor, Draw.tensor, Draw.dtype, Draw.foreign, Draw.thing, Draw.thing, Draw.several,
)  # fmt: skip
# The first that matches; what none matches is taken for a tensor.
BY_NAME: tuple[tuple[str, Callable[[Draw], Drawn]], ...] = (
    (r"dims?\d?|axis\d?|axes|start_dim|end_dim|source|destination|perm|dim_?names?",
     lambda d: just(d.pick(DIMS))),
    (r"\w*dtype", Draw.dtype),
    (r"shape|size|\w*_shape|target_shape|sizes|newshape|output_size",
     lambda d: just(d.pick(SHAPES[:7]) if d.chance(0.7) else d.pick(SHAPES))),
    (r"\w*(features|channels|width|heads|layers|classes|embeddings|embed\w*|hidden_size|input_size"
     r"|nhead|d_model|units|filters|groups|depth|rows|columns|num\w*|count|vocabulary)",
     Draw.size),
    (r"kernel_size|strides?|paddings?|dilations?|\w*padding|window\w*|ksize|repeats|multiples|reps"
     r"|block_size|\w*factor|n_fft|hop_length|win_length|pad|pad_width|shifts?|rate",
     Draw.lengths),
    (r"index|indices|ids|\w*_ids|labels|lengths|offsets|\w*_indices|targets?", Draw.indices),
    (r"tensors|arrays|inputs|values|xs|seq|sequence|operands|parameters|params", Draw.several),
    (r"mode|reduction|\w*mode|equation|subscripts|rounding|side|reduce|kind|nonlinearity|UPLO"
     r"|indexing|approximate|activation|interpolation|order|driver|data_format|string|norm",
     lambda d: just(d.pick(TEXTS))),
    (r"name|scope", lambda d: just(d.pick((None, None, None, "a", "a", "", "a/b", "é", "0")))),
    (r"argnums?|in_dims|in_axes|out_dims|out_axes", lambda d: just(d.pick((0, 0, 0, 1, -1, (0,))))),
    (r"chunk_size|has_aux", lambda d: just(None if d.chance(0.5) else False)),
    (r"func(tion)?s?|f|fn|fun|callback|hook|model|network",
     lambda d: d.pick(THINGS) if d.chance(0.3) else Drawn("lambda x: x * 2", lambda _: _double)),
    (r"keepdims?|unbiased|inplace|bias|affine|training|train|requires_grad|descending|stable|sorted"
     r"|largest|upper|left|transpose\w*|return_\w+|batch_first|bidirectional|\w+_graph|ceil_mode"
     r"|align_corners|hermitian|full_matrices|compute_\w+|copy|out_\w+|include_self|accumulate",
     lambda d: just(d.chance(0.5))),
    (r"n|k|m|num|start|end|stop|step|steps|offset|diagonal|correction|ddof|seed|p|q|N|M|sections"
     r"|chunks|bins|length|lags|times|degree|power|ord|r|low|high|minlength|split_size\w*",
     lambda d: just(d.pick((0, 1, 2, 3, -1, 0.5, 2.0)))),
    (r"eps\w*|alpha|beta|value|lr|momentum|weight_decay|lambd|threshold|margin|prob|keep_prob|rtol"
     r"|atol|rho|gamma|delta|max_norm|negative_slope|min_val|max_val|min|max|scale|a|b|std|var\w*",
     lambda d: just(d.pick((0.0, 0.5, 1.0, 1e-5, -1.0, 2))) if d.chance(0.7) else d.tensor()),
    (r"device|layout|memory_format|generator|out|session|graph|dtype_hint",
     lambda d: just(d.pick((None, "cpu"))) if d.chance(0.8) else d.tensor()),
)  # fmt: skip


def _double(x: Any) -> Any:
    return x * 2
