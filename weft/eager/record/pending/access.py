"""Reads recorded values: computes the array if it is pending, or says why there is none."""

from __future__ import annotations

from typing import NoReturn

from weft.eager.record.pending.lazy import Alias, Array, Lazy, Record, Tracer, begun
from weft.eager.record.pending.state import compute, flush, trace
from weft.errors import TracerError, WeftError
from weft.ir.look import looks
from weft.ir.node import at_user_line
from weft.runtime.flight import land_for


def array_of(lazy: Lazy) -> Array:
    """The array of a value, computed now if it is pending.

    Raises:
        WeftError: its memory was overwritten by an in-place change.
    """
    looks.count += 1
    array = lazy.array  # read once: another thread may be computing the value
    if array is None and not trace.now.depth:
        flush(lazy)
        array = lazy.array
    if array is None:  # recorded by another thread, or before a function that is being traced
        compute([lazy])
        array = lazy.array
        if array is None:
            refuse(lazy)
    land_for(id(array))
    return array


def array_if_known(lazy: Lazy) -> Array | None:
    """`array_of`, but `None` if the value depends on an argument of a function being traced."""
    try:
        return array_of(lazy)
    except TracerError:
        return None


def detached(base: Lazy) -> Lazy | None:
    """The same value detached, if its array is known; `None` while it is pending.

    Nothing is recorded. After an optimizer step, which ends an iteration, pending values are
    computed first.
    """
    if base.array is None and trace.now.pending and not trace.now.limit:
        flush(base)
    if base.array is None:
        return None
    alias = begun(Alias(), base.type)
    alias.base, alias.array, alias.loan = base, base.array, base.loan
    return alias


def refuse(lazy: Lazy, record: Record | None = None) -> NoReturn:
    """Raise the error of a value that has no array, read by a record or by the user.

    Raises:
        TracerError: it is an argument of a function that is being traced.
        WeftError: its memory was overwritten by an in-place change.
    """
    source = None if record is None else record.source
    where = at_user_line() if source is None else f" (created at {source})"
    if isinstance(lazy, Tracer):
        raise TracerError(
            "the value of an argument is needed while a function is traced (by jit, vmap, "
            f"checkpoint, ...), where it stands for any {lazy.type}; use operations such as "
            "where() instead of Python's if, or make the argument static"
            f"{where}"
        )
    error = WeftError(
        "a value that is needed here was changed in place after it was used; clone() it before the "
        f"change, or call backward() first{where}"
    )
    error.serial = None if record is None else record.serial
    raise error
