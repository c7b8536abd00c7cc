"""Random tensors. Numbers are recorded operations on a counter (`weft.ops.random`).

The counter is an input of the program: it carries the seed and the number of the call, so neither
another seed nor another call is another program, and a result depends on nothing but those two.
"""

from __future__ import annotations

import math
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.eager.call import lazy_of, leaf, number, recorded, wrap
from weft.eager.creation import dims, finished, floating, given
from weft.eager.device import CPU, check_device
from weft.eager.handle import Handle
from weft.eager.lazy import Drawn, Lazy, array_of, begun
from weft.eager.limits import check_held
from weft.eager.plan import intern
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, float32, float64, int64, uint8, uint64
from weft.ir.node import Value
from weft.ir.shape import broadcast, known, show
from weft.ops import discrete
from weft.ops import random as nodes
from weft.ops.base import at_user_line, catalogue, constant_of
from weft.runtime.flight import LEAF, new_lock

if TYPE_CHECKING:
    from weft.eager.tensor import Tensor

SEED: Final = (0, 0)  # the key of Philox, always: what differs is the counter
_WORD: Final = (1 << 64) - 1


def splitmix64(seed: int) -> int:
    """A 64-bit number that is far from those of other seeds.

    Source: Steele et al., "Fast splittable pseudorandom number generators", 2014.
    """
    z = (seed + 0x9E3779B97F4A7C15) & _WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    return z ^ (z >> 31)


class Generator:
    """A stream of random numbers of its own.

    >>> import weft as wf
    >>> a = wf.rand(3, generator=wf.Generator().manual_seed(1))
    >>> b = wf.rand(3, generator=wf.Generator().manual_seed(1))
    >>> a.tolist() == b.tolist()
    True
    """

    def __init__(self, device: Any = None) -> None:
        check_device(device)
        self.device = CPU
        self._lock = new_lock(LEAF)
        self.seed()

    def manual_seed(self, seed: int) -> Generator:
        """Begin the stream of this seed."""
        self._seed = int(seed) & _WORD
        self._start = splitmix64(self._seed)
        self._calls = 0
        return self

    def seed(self) -> int:
        """Begin a stream that nobody can foresee; its seed."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)._seed

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self._seed

    def next(self) -> int:
        """The counter of the next call."""
        with self._lock:
            self._calls += 1
            return (self._start + self._calls) & _WORD

    def get_state(self) -> Tensor:
        """Where the stream is: the bytes of three numbers, uint8."""
        state = np.array([self._seed & _WORD, self._start, self._calls], np.uint64)
        return wrap(leaf(state.view(np.uint8)))

    def set_state(self, state: Any) -> Generator:
        """Go on where `get_state` was called.

        Raises:
            DTypeError: not what `get_state` gives.
        """
        array = lazy_of(state)
        if array.type.dtype is not uint8 or array.type.shape != (24,):
            text = f"set_state: expected 24 numbers of uint8, got {array.type}"
            raise DTypeError(text + at_user_line())
        found = np.ascontiguousarray(array_of(array)).view(np.uint64)
        self._seed, self._start, self._calls = map(int, found)
        return self


default_generator: Final = Generator()


def manual_seed(seed: int) -> Generator:
    """Begin the stream of this seed, for all random functions that are given no generator.

    >>> import weft as wf
    >>> _ = wf.manual_seed(0)
    >>> a = wf.randn(2)
    >>> _ = wf.manual_seed(0)
    >>> a.tolist() == wf.randn(2).tolist()
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Begin a stream that nobody can foresee; its seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the stream that random functions take from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Where the stream is that random functions take from, for `set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Go on where `get_rng_state` was called."""
    default_generator.set_state(state)


def next_counter(generator: Generator | None = None) -> Tensor:
    """The counter of one more random call: an input for functions of `weft.ops.random`."""
    return wrap(_draw(default_generator if generator is None else generator))


def _draw(generator: Generator) -> Drawn:
    lazy = begun(Drawn(), intern(uint64, ()))
    lazy.array = np.array(generator.next(), np.uint64)
    lazy.again = partial(_draw, generator)
    return lazy


# Functions of graph values


@recorded(differentiable=False)
def uniform_node(
    counter: Value, low: Value | None, high: Value | None, *, shape: Any, dtype: DType
) -> Value:
    """Uniform numbers, from 0 to 1 without ends."""
    if low is None or high is None:
        return nodes.random_uniform(counter, SEED, shape, dtype)
    return nodes.random_uniform(counter, SEED, shape, dtype, low, high)


@recorded(differentiable=False)
def normal_node(
    counter: Value, mean: Value | None, std: Value | None, *, shape: Any, dtype: DType
) -> Value:
    """Normal numbers, of mean 0 and standard deviation 1 where none is given."""
    x = nodes.random_normal(counter, SEED, shape, dtype)
    x = x if std is None else x * catalogue.cast(std, dtype=dtype)
    return x if mean is None else x + catalogue.cast(mean, dtype=dtype)


@recorded(differentiable=False)
def integers_node(counter: Value, *, shape: Any, low: int, high: int, dtype: DType) -> Value:
    """Integers from `low` to below `high` as numbers of any type."""
    if dtype.is_integer:
        return nodes.random_integers(counter, SEED, shape, low, high, dtype)
    x = nodes.random_integers(counter, SEED, shape, low, high, int64)
    return catalogue.cast(x, dtype=dtype)


@recorded(differentiable=False)
def _permutation(counter: Value, *, size: int, dtype: DType) -> Value:
    return catalogue.cast(nodes.random_permutation(counter, SEED, size), dtype=dtype)


@recorded(differentiable=False)
def bernoulli_node(counter: Value, p: Value, *, shape: Any, dtype: DType) -> Value:
    """Ones with the probabilities `p`, which broadcast, and zeros."""
    p = catalogue.broadcast_to(catalogue.cast(p, dtype=float32), shape=shape)
    return catalogue.cast(nodes.bernoulli(counter, SEED, shape, p), dtype=dtype)


@recorded(differentiable=False)
def _multinomial(counter: Value, weights: Value, *, count: int, replacement: bool) -> Value:
    flat = weights if len(known(weights.shape)) == 2 else catalogue.expand_dims(weights, axis=0)
    logits = catalogue.log(catalogue.cast(flat, dtype=float32))
    if replacement:
        drawn = nodes.categorical(counter, SEED, logits, count)
    else:  # the largest of logits + Gumbel noise are a draw without replacement
        u = nodes.random_uniform(counter, SEED, known(flat.shape), low=1e-10)
        noisy = logits - catalogue.log(-catalogue.log(u))
        order = catalogue.sort.all(catalogue.negative(noisy), axis=1)[1]
        drawn = order[:, :count]
    drawn = catalogue.cast(drawn, dtype=int64)
    return drawn if flat is weights else catalogue.squeeze(drawn, axes=(0,))


# Functions


def rand(
    *shape: Any, size: Any = None, generator: Generator | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers from 0 to below 1, in a shape given as numbers or as one sequence.

    >>> import weft as wf
    >>> x = wf.rand(2, 3)
    >>> x.shape, bool((x >= 0).numpy().all())
    ((2, 3), True)
    """
    return finished(_unit(given(shape, size, "rand"), generator, dtype, device), requires_grad)


def _unit(shape: tuple[int, ...], generator: Generator | None, dtype: Any, device: Any) -> Lazy:
    check_device(device)
    if floating(dtype).is_complex:
        return _parts(shape, floating(dtype), generator, normal=False)
    static = {"shape": shape, "dtype": floating_kind(dtype, "rand")}
    return uniform_node.record((next_counter(generator), None, None), static)[0]


def _parts(shape: tuple[int, ...], dtype: DType, generator: Generator | None, normal: bool) -> Lazy:
    static = {"shape": shape, "dtype": dtype, "normal": normal}
    return _complex.record((next_counter(generator),), static)[0]


@recorded(differentiable=False)
def _complex(counter: Value, *, shape: Any, dtype: DType, normal: bool) -> Value:
    """Real and imaginary parts that are drawn alike; of normal ones, the variance is 1 together."""
    both = (2, *shape)
    if normal:
        drawn = nodes.random_normal(counter, SEED, both, dtype.real)
        drawn = drawn * constant_of(math.sqrt(0.5), dtype.real)
    else:
        drawn = nodes.random_uniform(counter, SEED, both, dtype.real)
    return catalogue.complex(drawn[0], drawn[1])


def floating_kind(dtype: Any, name: str) -> DType:
    """A floating element type that is given, or the default one.

    Raises:
        DTypeError: it is not floating.
    """
    found = floating(dtype)
    if not found.is_floating:
        text = f"{name}: expected a floating element type, got {found}{at_user_line()}"
        raise DTypeError(text)
    return found


def randn(
    *shape: Any, size: Any = None, generator: Generator | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers of mean 0 and standard deviation 1.

    Complex numbers have real and imaginary parts of variance 1/2 each.
    """
    check_device(device)
    shape = given(shape, size, "randn")
    if floating(dtype).is_complex:
        drawn = _parts(shape, floating(dtype), generator, normal=True)
        return finished(drawn, requires_grad)
    static = {"shape": shape, "dtype": floating_kind(dtype, "randn")}
    return finished(
        normal_node.record((next_counter(generator), None, None), static)[0], requires_grad
    )


def randint(
    low: int = 0, high: Any = None, size: Any = None, *,
    generator: Generator | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Integers from `low` (0) to below `high`, of equal probability, int64 unless said otherwise.

    Called as `randint(high, size)` or `randint(low, high, size)`.

    Raises:
        ShapeError: there is no such integer.

    Example:
        >>> import weft as wf
        >>> wf.randint(3, 4, (2,)).tolist()
        [3, 3]
    """
    check_device(device)
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    kind = int64 if dtype is None else as_dtype(dtype)
    low, high = int(low), int(high)
    if low >= high:
        text = f"randint: expected low < high, got {low} and {high}{at_user_line()}"
        raise ShapeError(text)
    check_held("randint", kind, low, high - 1)
    static = {"shape": dims((size,), "randint"), "low": low, "high": high, "dtype": kind}
    return finished(integers_node.record((next_counter(generator),), static)[0], requires_grad)


def randperm(
    n: int, *, generator: Generator | None = None, dtype: Any = int64, device: Any = None
) -> Tensor:
    """The integers from 0 to below `n` in random order.

    >>> import weft as wf
    >>> sorted(wf.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    check_device(device)
    kind = as_dtype(dtype)
    static = {"size": dims((n,), "randperm")[0], "dtype": kind}
    check_held("randperm", kind, 0, max(n - 1, 0))
    return _permutation(next_counter(generator), **static)


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *,
    generator: Generator | None = None, dtype: Any = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Normal numbers of this mean and standard deviation: numbers, or tensors of one per result.

    >>> import weft as wf
    >>> wf.normal(wf.zeros(3), 0.1).shape
    (3,)
    """
    check_device(device)
    if not isinstance(std, Handle) and not std >= 0:
        raise ShapeError(f"normal: expected std >= 0, got {std}{at_user_line()}")
    kinds = [x.lazy.type for x in (mean, std) if isinstance(x, Handle)]
    shape = dims((size,), "normal") if size is not None else ()
    for kind in kinds:
        shape = known(broadcast(shape, known(kind.shape)))
    found = floating_kind(dtype or (kinds[0].dtype if kinds else None), "normal")
    moments = [x if isinstance(x, Handle) else scalar(x, found) for x in (mean, std)]
    return normal_node(next_counter(generator), *moments, shape=shape, dtype=found)


def scalar(value: Any, dtype: DType) -> Tensor:
    """A number as a tensor, which is an input of the program."""
    return wrap(number(value, dtype))


def bernoulli(x: Any, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Ones with the probabilities in `x` (or `p` everywhere), and zeros else, in the type of `x`.

    >>> import weft as wf
    >>> wf.bernoulli(wf.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    kind = lazy_of(x).type
    chance = x if p is None else scalar(p, float32)
    static = {"shape": known(kind.shape), "dtype": kind.dtype}
    return bernoulli_node(next_counter(generator), chance, **static)


@recorded(differentiable=False)
def _binomial(counter: Value, count: Value, p: Value, *, shape: Any, dtype: DType) -> Value:
    count, p = (catalogue.cast(x, dtype=float64) for x in (count, p))
    return catalogue.cast(discrete.binomial(counter, SEED, count, p, shape), dtype=dtype)


def binomial(count: Any, prob: Any, *, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`; the two broadcast.

    Returns:
        In the element type of `count`; NaN where that is negative or not whole, or a probability
        not from 0 to 1.

    Raises:
        DTypeError: no floating tensors of one element type.

    >>> import weft as wf
    >>> wf.binomial(wf.tensor([3.0, 4.0]), wf.tensor([0.0, 1.0])).tolist()
    [0.0, 4.0]
    """
    kinds = [lazy_of(x).type for x in (count, prob)]
    if kinds[0].dtype is not kinds[1].dtype or not kinds[0].dtype.is_floating:
        raise DTypeError(
            f"binomial: expected floating tensors of one element type, got {kinds[0].dtype} and "
            f"{kinds[1].dtype}{at_user_line()}"
        )
    shape = known(broadcast(*[known(kind.shape) for kind in kinds]))
    static = {"shape": shape, "dtype": kinds[0].dtype}
    return _binomial(next_counter(generator), count, prob, **static)


@recorded(differentiable=False)
def _poisson(counter: Value, rate: Value, *, dtype: DType) -> Value:
    given = catalogue.cast(rate, dtype=float64)
    drawn = discrete.poisson(counter, SEED, given, known(rate.shape))
    return catalogue.cast(drawn, dtype=dtype)


def poisson(x: Any, generator: Generator | None = None) -> Tensor:
    """How many events there are, where `x` are expected on average, in the type of `x`.

    Raises:
        DTypeError: `x` is not floating.

    >>> import weft as wf
    >>> wf.poisson(wf.zeros(2)).tolist()
    [0.0, 0.0]
    """
    kind = lazy_of(x).type
    if not kind.dtype.is_floating:
        raise DTypeError(f"poisson: expected floating rates, got {kind.dtype}{at_user_line()}")
    return _poisson(next_counter(generator), x, dtype=kind.dtype)


def multinomial(
    weights: Any, num_samples: int, replacement: bool = False, *,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Draw indices, each with a probability proportional to its weight.

    Args:
        weights: not negative, shape (classes,) or (rows, classes).
        replacement: whether an index may be drawn again.

    Returns:
        int64, shape (num_samples,) or (rows, num_samples).

    Raises:
        ShapeError: weights of another rank, no samples, or more of them than classes without
            replacement.
        DTypeError: weights that are not floating.

    Example:
        >>> import weft as wf
        >>> wf.multinomial(wf.tensor([0.0, 3.0, 0.0]), 2, replacement=True).tolist()
        [1, 1]
    """
    shape, kind = known(lazy_of(weights).type.shape), lazy_of(weights).type.dtype
    if not kind.is_floating:
        raise DTypeError(f"multinomial: expected floating weights, got {kind}{at_user_line()}")
    if num_samples < 1:
        text = f"multinomial: expected at least one sample, got {num_samples}"
        raise ShapeError(text + at_user_line())
    if len(shape) not in (1, 2):
        text = f"multinomial: expected weights of rank 1 or 2, got {show(shape)}"
        raise ShapeError(text + at_user_line())
    if not replacement and num_samples > shape[-1]:
        raise ShapeError(
            f"multinomial: cannot draw {num_samples} of {shape[-1]} classes without replacement; "
            f"pass replacement=True{at_user_line()}"
        )
    static = {"count": num_samples, "replacement": replacement}
    return _multinomial(next_counter(generator), weights, **static)


def rand_like(
    x: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None
) -> Tensor:
    """Uniform numbers from 0 to below 1 with the shape and element type of `x`."""
    check_device(device)
    kind = lazy_of(x).type
    return rand(known(kind.shape), dtype=dtype or kind.dtype, requires_grad=requires_grad)


def randn_like(
    x: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None
) -> Tensor:
    """Normal numbers of mean 0 and standard deviation 1, shaped and typed like `x`."""
    check_device(device)
    kind = lazy_of(x).type
    return randn(known(kind.shape), dtype=dtype or kind.dtype, requires_grad=requires_grad)


def randint_like(
    x: Any, low: int, high: int | None = None, dtype: Any = None, *, device: Any = None
) -> Tensor:
    """Integers from `low` (0) to below `high` with the shape and element type of `x`."""
    check_device(device)
    kind = lazy_of(x).type
    return randint(low, high, known(kind.shape), dtype=dtype or kind.dtype)
