"""Random eager programs that run unchanged in PyTorch and in Weft.

A program is a list of steps; each takes the library and the values so far, and gives a new value
or changes one in place. Steps are drawn while PyTorch runs them: what it refuses is left out.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch

SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33)


class Program:
    """`steps` drawn operations over some leaves that need gradients and some that need none."""

    def __init__(self, seed, steps):
        self.rng = np.random.default_rng(seed)
        self.dtype = self.pick("float32", "float64", "float64")
        self.steps = []
        self.arrays = [self.array(*self.shape()) for _ in range(self.int(1, 3))]
        self.tracked = [i == 0 or self.flag() for i in range(len(self.arrays))]
        values = self.leaves(torch)
        values = [x * 1 for x in values]
        tries = 0
        while len(self.steps) < steps and tries < 10 * steps:
            tries += 1
            step = self.pick(*DRAWS)(self, values)
            if step is None:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made = step(torch, values)
            except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
                continue
            if made is not None and not moderate(made):
                continue
            self.steps.append(step)
            if made is not None:
                values.append(made)

    def leaves(self, library):
        """Fresh leaves in `torch` or `weft`."""
        made = [library.tensor(a) for a in self.arrays]
        return [x.requires_grad_() if t else x for x, t in zip(made, self.tracked, strict=True)]

    def run(self, library, leaves):
        """The values after all steps; the first ones are copies of the leaves."""
        values = [x * 1 for x in leaves]
        for step in self.steps:
            made = step(library, values)
            if made is not None:
                values.append(made)
        return values

    # Draws.

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def flag(self):
        return bool(self.rng.integers(2))

    def pick(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def shape(self):
        return tuple(int(n) for n in self.rng.choice(SIZES, self.int(0, 3)))

    def array(self, *shape):
        return np.asarray(self.rng.uniform(-2, 2, shape), self.dtype)

    def value(self, values, kind="floating", rank=0):
        """The index of a value, recent ones more often, or None."""
        fit = [
            i for i, x in enumerate(values)
            if x.dim() >= rank and (kind == "any" or x.is_floating_point() == (kind == "floating"))
        ]  # fmt: skip
        if not fit:
            return None
        return fit[-min(int(self.rng.geometric(0.3)), len(fit))]

    def key(self, shape):
        """A basic index: integers, slices, None, an ellipsis."""
        parts = []
        for n in shape[: self.int(0, len(shape))]:
            kind = self.int(0, 3)
            if kind == 0 and n:
                parts.append(self.int(-n, n - 1))
            elif kind == 1:
                parts.append(slice(self.int(0, n), None, self.int(1, 3)))
            elif kind == 2:
                parts.append(slice(None, self.int(1, n) if n else None))
            else:
                parts.append(slice(None))
        if self.int(0, 4) == 0:
            parts.insert(self.int(0, len(parts)), None)
        elif self.int(0, 4) == 0:
            parts.append(Ellipsis)
        return tuple(parts)


DRAWS = []
UNARY = (
    "sin", "tanh", "abs", "relu", "sigmoid", "neg", "square", "erf", "floor", "sign", "cos", "atan",
    "expm1", "trunc", "reciprocal", "rsqrt", "isfinite", "isnan", "logical_not", "signbit",
)  # fmt: skip
STEPPED = ("floor", "trunc", "sign", "signbit")
SAFE = ("reciprocal", "rsqrt")  # of |x| + 1/2
NONLINEAR = (
    "gelu", "silu", "leaky_relu", "softplus", "elu", "hardtanh", "hardswish", "mish", "selu",
    "logsigmoid",
)  # fmt: skip
REDUCTIONS = (
    "sum", "mean", "amax", "amin", "logsumexp", "var", "std", "argmax", "prod", "all", "any",
    "nansum", "norm",
)  # fmt: skip
SCANS = ("cumsum", "cumprod", "logcumsumexp", "softmax", "log_softmax", "flip", "sort", "argsort")


def drawn(function):
    """Register a function from a `Program` and its values so far to a step, or None."""
    DRAWS.append(function)
    return function


def axis(p, x):
    return p.int(-x.dim(), x.dim() - 1) if x.dim() else 0


def moderate(x):
    """Whether rounding stays small in results computed from it."""
    return not x.is_floating_point() or bool((x.detach().abs() < 100).all())


def distinct(x):
    """Whether the order of the numbers is clear; that among equal ones is not promised."""
    ordered = x.detach().reshape(-1).sort().values
    return bool((ordered.diff() > 1e-3).all())


def apart(x, y):
    """Whether it is clear which elements are greater; false of shapes that do not broadcast."""
    try:
        return bool(((x.detach().double() - y.detach()).abs() > 1e-4).all())
    except RuntimeError:
        return False


def near_a_step(x):
    """Whether rounding may decide between two numbers far apart: at multiples of 1/8."""
    x = x.detach().double() * 8
    return not moderate(x) or bool(((x - x.round()).abs() < 1e-3).any())


def overlaps(x):
    """Whether some elements overlap in memory; Weft does not change these in place."""
    count = x.untyped_storage().nbytes() // x.element_size()
    places = torch.arange(count).as_strided(x.shape, x.stride(), x.storage_offset())
    return places.unique().numel() != x.numel()


@drawn
def unary(p, values):
    i, name = p.value(values), p.pick(*UNARY)
    if name in STEPPED and near_a_step(values[i]):
        return None
    if name in SAFE:
        return lambda lib, v: getattr(lib, name)(v[i].abs() + 0.5)
    return lambda lib, v: getattr(lib, name)(v[i])


@drawn
def activation(p, values):
    i, name = p.value(values), p.pick(*NONLINEAR)
    return lambda lib, v: getattr(lib.nn.functional, name)(v[i])


@drawn
def with_number(p, values):
    i, c, kind = p.value(values, "any"), p.pick(2, 0.5, -1.5, 3), p.int(0, 7)
    forms = (
        lambda x: x * c, lambda x: c - x, lambda x: x / 3, lambda x: (x.abs() + 1) ** c,
        lambda x: x > c, lambda x: x.clamp(-1, 1), lambda x: x % 3, lambda x: x // 2,
    )  # fmt: skip
    if kind >= 4 and near_a_step(values[i]):
        return None
    return lambda lib, v: forms[kind](v[i])


@drawn
def binary(p, values):
    i, j = p.value(values, "any"), p.value(values)
    name = p.pick("add", "sub", "mul", "maximum", "minimum", "lt", "ge", "fmod", "hypot", "xlogy")
    if name in ("lt", "ge") and not apart(values[i], values[j]):
        return None
    if name in ("fmod", "xlogy", "hypot"):  # of zeros, PyTorch's slope of hypot is NaN
        return lambda lib, v: getattr(lib, name)(v[i], v[j].abs() + 1)
    return lambda lib, v: getattr(lib, name)(v[i], v[j])


@drawn
def choose(p, values):
    i, j = p.value(values), p.value(values)
    if not apart(values[i], values[j]):
        return None
    return lambda lib, v: lib.where(v[i] > v[j], v[i], v[j] * 2)


@drawn
def reduce(p, values):
    i, name, keep = p.value(values), p.pick(*REDUCTIONS), p.flag()
    x = values[i]
    if name == "norm":
        order, dim = p.pick(1, 2, 3, float("inf")), axis(p, x)
        return lambda lib, v: lib.linalg.vector_norm(v[i], order, dim=dim, keepdim=keep)
    if name in ("argmax", "prod", "all", "any"):
        dim = axis(p, x)
    else:
        dim = tuple(a for a in range(x.dim()) if p.flag()) or 0
    if x.numel() == 0 or (name == "argmax" and not distinct(x)):
        return None
    return lambda lib, v: getattr(lib, name)(v[i], dim=dim, keepdim=keep)


@drawn
def scan(p, values):
    i, name = p.value(values, rank=1), p.pick(*SCANS)
    if i is None:
        return None
    dim = axis(p, values[i])
    if name in ("sort", "argsort"):
        if not distinct(values[i]):
            return None
        pick = (lambda y: y.values) if name == "sort" else (lambda y: y)
        return lambda lib, v: pick(getattr(lib, name)(v[i], dim=dim))
    if name == "flip":
        return lambda lib, v: lib.flip(v[i], (dim,))
    return lambda lib, v: getattr(lib, name)(v[i], dim=dim)


@drawn
def view(p, values):
    """A view: later changes of it or of its base are seen in both."""
    i = p.value(values, "any")
    x = values[i]
    kind = p.int(0, 8)
    if kind == 0:
        order = tuple(int(a) for a in p.rng.permutation(x.dim()))
        return lambda lib, v: v[i].permute(order)
    if kind == 1 and x.dim() > 1:
        a, b = axis(p, x), axis(p, x)
        return lambda lib, v: v[i].transpose(a, b)
    if kind == 2:
        a = p.int(-x.dim() - 1, x.dim())
        return lambda lib, v: v[i].unsqueeze(a)
    if kind == 3:
        return lambda lib, v: v[i].squeeze()
    if kind == 4 and x.is_contiguous():
        return lambda lib, v: v[i].view(-1)
    if kind == 5 and x.dim() > 1:
        return lambda lib, v: v[i].diagonal()
    if kind == 6 and x.dim():
        a = axis(p, x)
        size, step = p.int(1, max(x.shape[a], 1)), p.int(1, 3)
        return lambda lib, v: v[i].unfold(a, size, step)
    if kind == 7:
        extra = p.int(1, 3)
        return lambda lib, v: v[i].expand(extra, *v[i].shape)
    key = p.key(x.shape)
    return lambda lib, v: v[i][key]


@drawn
def shape(p, values):
    i = p.value(values)
    x = values[i]
    kind, dim = p.int(0, 6), axis(p, x)
    if kind == 0:
        return lambda lib, v: v[i].reshape(-1)
    if kind == 1:
        return lambda lib, v: lib.cat((v[i], v[i] * 2), dim)
    if kind == 2:
        return lambda lib, v: lib.stack((v[i], -v[i]), dim)
    if kind == 3:
        times = tuple(p.int(1, 2) for _ in range(x.dim()))
        return lambda lib, v: v[i].repeat(times)
    if kind == 4 and x.dim():
        before, after, number = p.int(-1, 2), p.int(0, 2), p.pick(0.0, 1.5)
        return lambda lib, v: lib.nn.functional.pad(v[i], (before, after), value=number)
    if kind == 5:
        shift = p.int(-3, 3)
        return lambda lib, v: v[i].roll(shift, dim)
    diagonal = p.int(-1, 1)
    return lambda lib, v: v[i].tril(diagonal)


@drawn
def lookup(p, values):
    i = p.value(values, rank=1)
    if i is None or 0 in values[i].shape:
        return None
    x, dim = values[i], axis(p, values[i])
    n = x.shape[dim]
    kind, numbers = p.int(0, 4), p.rng.integers(0, n, p.int(0, 6))
    if kind == 0:
        return lambda lib, v: v[i].index_select(dim, lib.tensor(numbers))
    if kind == 1:
        first = p.rng.integers(-x.shape[0], x.shape[0], p.int(1, 5))
        return lambda lib, v: v[i][lib.tensor(first)]
    if kind == 2:
        cut = p.pick(0.0, 0.5)
        if not apart(x, torch.tensor(cut)):
            return None
        return lambda lib, v: v[i][v[i] > cut]
    if kind == 3:
        places = p.rng.integers(0, n, tuple(x.shape))
        return lambda lib, v: v[i].gather(dim, lib.tensor(places))
    places = p.rng.integers(0, n, tuple(x.shape))
    return lambda lib, v: v[i].scatter_add(dim, lib.tensor(places), v[i] * 2)


@drawn
def product(p, values):
    i, j = p.value(values, rank=1), p.value(values, rank=1)
    if i is None:
        return None
    if p.flag():
        return lambda lib, v: v[i] @ v[i].transpose(-1, -2) if v[i].dim() > 1 else v[i] @ v[i]
    return lambda lib, v: lib.einsum("a,b->ab", v[i].reshape(-1)[:9], v[j].reshape(-1)[:9])


@drawn
def normalize(p, values):
    i = p.value(values, rank=1)
    n = 0 if i is None or not values[i].numel() else values[i].shape[-1]
    if n < 2 or bool((values[i].detach().std(-1) < 0.1).any()):
        return None
    return lambda lib, v: lib.nn.functional.layer_norm(v[i], (n,))


@drawn
def arithmetic_in_place(p, values):
    i, j = p.value(values), p.value(values)
    name, c = p.pick("add_", "mul_", "sub_", "copy_"), p.pick(2.0, 0.5)
    if overlaps(values[i]):
        return None
    if p.flag() and name != "copy_":
        return lambda lib, v: discard(getattr(v[i], name)(c))
    if i == j or values[j].dim() > values[i].dim():
        return None
    return lambda lib, v: discard(getattr(v[i], name)(v[j]))


@drawn
def function_in_place(p, values):
    i, name = p.value(values), p.pick("tanh_", "sin_", "relu_", "zero_", "abs_", "neg_")
    if overlaps(values[i]):
        return None
    return lambda lib, v: discard(getattr(v[i], name)())


@drawn
def assign(p, values):
    i, kind = p.value(values), p.int(0, 3)
    x = values[i]
    if overlaps(x):
        return None
    if kind == 0:
        return lambda lib, v: v[i].__setitem__(v[i] > 0.5, 0.25)
    key = p.key(x.shape)
    if kind == 1 or x.numel() == 0:
        return lambda lib, v: v[i].__setitem__(key, -0.75)
    if kind == 2 and x.dim():
        rows = p.rng.permutation(x.shape[0])[: p.int(1, 3)]
        return lambda lib, v: v[i].__setitem__(lib.tensor(rows), v[i][0] * 3)
    return lambda lib, v: v[i].__setitem__(key, (v[i][key] * 2).detach())


@drawn
def conversion(p, values):
    i, kind = p.value(values, "any"), p.int(0, 4)
    forms = (
        lambda x: x.detach(), lambda x: x.clone(), lambda x: x.double(),
        lambda x: x.to(dtype=x.dtype), lambda x: (x.float() * 4).round().long(),
    )  # fmt: skip
    if kind == 4 and near_a_step(values[i]):
        return None
    return lambda lib, v: forms[kind](v[i])


@drawn
def untracked(p, values):
    i = p.value(values)

    def step(lib, v):
        with lib.no_grad():
            return v[i] * 2 + 1

    return step


@drawn
def branch(p, values):
    """Python reads a value and branches on it."""
    i, j = p.value(values), p.value(values)
    if abs(float(values[i].detach().double().sum()) - 0.123) < 1e-3:
        return None
    return lambda lib, v: v[j] * 2 if float(v[i].detach().double().sum()) > 0.123 else v[j] - 1


def discard(_changed):
    """An in-place change creates no new value."""
