"""Random tensors, drawn from a counter by recorded operations (`weft.ops.random.counter_based`).

The counter combines the seed and the number of the call, and is an input of the program. So another
seed or call needs no other program, and a result depends on these two alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.documentation import named
from weft.eager.functions.creation.constructor import dims, finished, floating, given, near
from weft.eager.record.call.interned_type import intern
from weft.eager.record.pending.lazy import Drawn, begun, serials
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import Recorded, lazy_of, recorded, wrap
from weft.eager.tensor.dtype.dtype_info import check_held
from weft.eager.tensor.generator import Generator, default_generator, in_branch
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.scalar import number
from weft.eager.tensor.view.memory_format import check_place
from weft.errors import DTypeError, ShapeError, WeftError
from weft.ir.dtype import DType, as_dtype, int64, uint64
from weft.ir.node import at_user_line
from weft.ir.shape import broadcast, known
from weft.ops.random import distribution as draws

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor


def manual_seed(seed: int) -> Generator:
    """Seed the default generator.

    >>> import weft as wf
    >>> _ = wf.manual_seed(0)
    >>> a = wf.randn(2)
    >>> _ = wf.manual_seed(0)
    >>> a.tolist() == wf.randn(2).tolist()
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the system's randomness; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, for `set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Restore a state from `get_rng_state`."""
    default_generator.set_state(state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """A context manager after which the state of the default generator is restored.

    Args:
        devices: no effect; there is one generator.
        enabled: if false, nothing is restored.

    >>> import weft as wf
    >>> _ = wf.manual_seed(0)
    >>> with wf.fork_rng():
    ...     a = wf.rand(2)
    >>> a.tolist() == wf.rand(2).tolist()
    True
    """
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


def next_counter(generator: Generator | None = None) -> Tensor:
    """The counter of the next random call, for functions of `weft.ops.random.counter_based`."""
    return wrap(_draw(default_generator if generator is None else generator))


def _draw(generator: Generator) -> Drawn:
    lazy = begun(Drawn(), intern(uint64, ()))
    lazy.array = np.array(generator.next(), np.uint64)
    lazy.again = partial(_draw_in_branch if in_branch() else _draw, generator)
    lazy.serial = next(serials)
    return lazy


def _draw_in_branch(generator: Generator) -> Drawn:
    """Draw again in a traced function, as its first run drew.

    Raises:
        WeftError: the streams of that run have ended.
    """
    if not in_branch():
        raise WeftError.here(
            "DistributedDataParallel: expected no random numbers with shards in a traced function, "
            "whose later runs draw on each rank anew: call the model outside of func.jit"
        )
    return _draw(generator)


# Functions of graph values


uniform_node = recorded(draws.uniform_node, differentiable=False)
normal_node = recorded(draws.normal_node, differentiable=False)
integers_node = recorded(draws.integers_node, differentiable=False)
_permutation = recorded(draws.permutation, differentiable=False)


# Functions


def rand(
    *shape: Any, size: Any = None, generator: Generator | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1), with a shape given as integers or as one sequence.

    >>> import weft as wf
    >>> x = wf.rand(2, 3)
    >>> x.shape, bool((x >= 0).numpy().all())
    ((2, 3), True)
    """
    check_place(device, layout)
    kind = _inexact(dtype, "rand")
    static = {"shape": given(shape, size, "rand"), "dtype": kind}
    if kind.is_complex:
        return _drawn(_complex, static | {"normal": False}, generator, requires_grad, device)
    return _drawn(uniform_node, static, generator, requires_grad, device)


_complex = recorded(draws.complex, differentiable=False)


def _drawn(
    node: Recorded, static: dict[str, Any], generator: Generator | None, requires_grad: bool,
    device: Any,
) -> Tensor:  # fmt: skip
    """A new tensor, drawn by a function of a counter."""
    counter = _draw(default_generator if generator is None else generator)
    if device is None and requires_grad is False and not trace.now.device:
        return node(counter, **static)
    return finished(node.record((counter,), static)[0], requires_grad, device)


def _inexact(dtype: Any, name: str) -> DType:
    """The given floating-point or complex dtype, or the default one."""
    found = floating(dtype)
    return found if found.is_complex else floating_kind(found, name)


def floating_kind(dtype: Any, name: str) -> DType:
    """The given floating-point dtype, or the default one.

    Raises:
        DTypeError: it is not floating-point.
    """
    found = floating(dtype)
    if not found.is_floating:
        text = f"{name}: expected a floating-point dtype, got {found}{at_user_line()}"
        raise DTypeError(text)
    return found


def randn(
    *shape: Any, size: Any = None, generator: Generator | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers with mean 0 and standard deviation 1.

    Complex numbers have real and imaginary parts of variance 1/2 each.
    """
    check_place(device, layout)
    kind = _inexact(dtype, "randn")
    static = {"shape": given(shape, size, "randn"), "dtype": kind}
    if kind.is_complex:
        return _drawn(_complex, static | {"normal": True}, generator, requires_grad, device)
    return _drawn(normal_node, static, generator, requires_grad, device)


def randint(
    low: int = 0, high: Any = None, size: Any = None, *,
    generator: Generator | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform integers in [`low` (0), `high`), int64 by default.

    Called as `randint(high, size)` or `randint(low, high, size)`.

    Raises:
        ShapeError: the range is empty.

    Example:
        >>> import weft as wf
        >>> wf.randint(3, 4, (2,)).tolist()
        [3, 3]
    """
    check_place(device, layout)
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
    return _drawn(integers_node, static, generator, requires_grad, device)


def randperm(
    n: int, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The integers in [0, n) in random order.

    >>> import weft as wf
    >>> sorted(wf.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    check_place(device, layout)
    kind = int64 if dtype is None else as_dtype(dtype)
    static = {"size": dims((n,), "randperm")[0], "dtype": kind}
    check_held("randperm", kind, 0, max(n - 1, 0))
    return _drawn(_permutation, static, generator, requires_grad, device)


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *,
    generator: Generator | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers with this mean and standard deviation, which are numbers or tensors.

    Raises:
        ShapeError: `std` is a negative number.
        OutOfRangeError: when computed, an element of `std` is negative.

    >>> import weft as wf
    >>> wf.normal(wf.zeros(3), 0.1).shape
    (3,)
    """
    check_place(device, layout)
    if not isinstance(std, Handle) and not std >= 0:
        raise ShapeError.here(f"normal: expected std >= 0, got {std}")
    kinds = [x.lazy.type for x in (mean, std) if isinstance(x, Handle)]
    shape = dims((size,), "normal") if size is not None else ()
    for kind in kinds:
        shape = known(broadcast(shape, known(kind.shape)))
    found = floating_kind(dtype or (kinds[0].dtype if kinds else None), "normal")
    moments = [x if isinstance(x, Handle) else scalar(x, found) for x in (mean, std)]
    static = {"shape": shape, "dtype": found, "check": isinstance(std, Handle)}
    drawn = normal_node.record((next_counter(generator), *moments), static)[0]
    return finished(drawn, requires_grad, device)


def scalar(value: Any, dtype: DType) -> Tensor:
    """A number as a tensor, which is an input of the program."""
    return wrap(number(value, dtype))


def _like(make: Callable[..., Tensor], what: str):
    @named(f"{make.__name__}_like", f"{what}, with the shape and dtype of `x`.")
    def like(
        x: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None,
        generator: Generator | None = None, layout: Any = None, pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        check_place(device, layout, memory_format)
        kind = lazy_of(x).type
        return make(
            known(kind.shape), dtype=dtype or kind.dtype, requires_grad=requires_grad,
            generator=generator, device=near(x, device),
        )  # fmt: skip

    return like


rand_like = _like(rand, "Uniform numbers in [0, 1)")
randn_like = _like(randn, "Normal numbers with mean 0 and standard deviation 1")


def randint_like(
    x: Any, low: int, high: int | None = None, dtype: Any = None, *, device: Any = None,
    generator: Generator | None = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Uniform integers in [`low` (0), `high`) with the shape and dtype of `x`."""
    check_place(device, layout, memory_format)
    kind = lazy_of(x).type
    return randint(
        low, high, known(kind.shape), dtype=dtype or kind.dtype, requires_grad=requires_grad,
        generator=generator, device=near(x, device),
    )  # fmt: skip
