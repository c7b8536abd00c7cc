"""Settings of the whole process under PyTorch's names."""

from __future__ import annotations

from typing import Any, Final

from weft import config
from weft.eager.record.pending.state import trace
from weft.eager.tensor.device import CPU, Device, number_of
from weft.errors import ArgumentError
from weft.runtime.execution.driver import flush_subnormals

PRECISIONS: Final = ("highest", "high", "medium")


def set_num_threads(count: Any) -> None:
    """Set how many threads run a step; results do not depend on it.

    Raises:
        ArgumentError: it is not a positive integer.

    Example:
        >>> import weft as wf
        >>> before = wf.get_num_threads()
        >>> wf.set_num_threads(1)
        >>> wf.get_num_threads()
        1
        >>> wf.set_num_threads(before)
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError.here(f"set_num_threads: expected a positive integer, got {count!r}")
    config.change("threads", count)


def get_num_threads() -> int:
    """The number of threads that run a step."""
    return int(config.get("threads"))


def set_flush_denormal(mode: bool) -> bool:
    """Make this thread flush subnormal (denormal) numbers to zero, or keep them: the default.

    It holds for interpreted and for compiled programs that this thread runs, with all threads of
    the team, for NumPy in this thread, and for threads that are started from it later. float16,
    and numbers that are only copied, are kept. Call it before the work that it is meant for:
    constants that were computed before stay.

    Returns:
        Whether the processor can do it.

    Raises:
        ArgumentError: `mode` is not a boolean.

    Example:
        >>> import weft as wf
        >>> wf.set_flush_denormal(True)
        True
        >>> (wf.tensor([1e-323], dtype=wf.float64) * 1).tolist()
        [0.0]
        >>> wf.set_flush_denormal(False)
        True
        >>> (wf.tensor([1e-323], dtype=wf.float64) * 1).tolist()
        [1e-323]
    """
    if type(mode) is not bool:
        raise ArgumentError.here(f"set_flush_denormal: expected True or False, got {mode!r}")
    return flush_subnormals(mode)


def set_float32_matmul_precision(precision: str) -> None:
    """Accept a precision of float32 matmuls; they are always computed in float32.

    Args:
        precision: `highest`, `high` or `medium`.

    Raises:
        ArgumentError: another precision.
    """
    if precision not in PRECISIONS:
        raise ArgumentError.here(
            f"set_float32_matmul_precision: expected one of {', '.join(PRECISIONS)}, got "
            f"{precision!r}"
        )


def get_float32_matmul_precision() -> str:
    """The precision of float32 matmuls: `highest`."""
    return PRECISIONS[0]


def set_default_device(device: Any) -> None:
    """Set the device of new tensors, in this thread: a CPU, or `None` for the first one.

    Raises:
        ConfigError: there is no such device.
    """
    trace.now.device = 0 if device is None else number_of(device)


def get_default_device() -> Device:
    """The device of new tensors."""
    number = trace.now.device
    return Device("cpu", number) if number else CPU
