"""Records a call and gives its tensor: natively, once native code is loaded.

CPython's headers are not at hand, so the native function is told where objects have their fields;
Python knows that. It is used only by interpreters of which all of this is known; the others use the
function in Python, which does the same.
"""

from __future__ import annotations

import ctypes
import sys
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

from weft.codegen.driver import recording
from weft.eager.record.call.plan import Plan
from weft.eager.record.pending.global_mark import inferring
from weft.eager.record.pending.lazy import Lazy, Record, in_package, serials
from weft.eager.record.pending.state import State
from weft.eager.tensor.handle import Handle, handle_of
from weft.runtime.execution import driver

if TYPE_CHECKING:
    from collections.abc import Callable

VERSIONS: Final = ((3, 11),)
"""Those of CPython with which it is tested."""
FASTCALL: Final = 0x80


def _made(
    kind: Any, now: State, plan: Plan, inputs: tuple[Lazy, ...], frame: FrameType | None
) -> Any:
    return handle_of(kind, now.record_one(plan, inputs, frame))


class Recorder:
    """Attributes:
    made: the tensor of a call with a single result, given its class, the state of this thread,
        the plan, the inputs, and the frame of the call.
    """

    __slots__ = ("_kept", "made")
    made: Callable[[Any, State, Plan, tuple[Lazy, ...], FrameType | None], Any]

    def __init__(self) -> None:
        self.made = _made
        self._kept: Any = None

    def quicken(self, entries: driver.Entries) -> None:
        """Use the native function, if it fits this interpreter."""
        if not _is_known():
            return
        table = recording.Table()
        library: Any = ctypes.pythonapi
        try:
            for name in recording.FUNCTIONS:
                setattr(table, name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
            for of, names in recording.SLOTS.items():
                for name in names:
                    setattr(table, recording.slot(of, name), _offset(_CLASSES[of], name))
        except (AttributeError, LookupError):  # another interpreter after all
            return
        objects = (Record, Lazy, None, True, False, 0, serials, in_package, inferring.open, _made)
        for name, x in zip(recording.OBJECTS, objects, strict=True):
            setattr(table, name, id(x))
        method = _Method(b"record", entries.record, FASTCALL, None)
        own = bytes(table)
        takes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        make = ctypes.PYFUNCTYPE(ctypes.py_object, *takes)(("PyCFunction_NewEx", library))
        self._kept = method, objects
        self.made = make(ctypes.addressof(method), own, None)


class _Method(ctypes.Structure):
    """CPython's `PyMethodDef`."""

    _fields_ = [
        ("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    ]  # fmt: skip


class _Member(ctypes.Structure):
    """CPython's `PyMemberDef`."""

    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t)]


_CLASSES: Final[dict[str, type[Any]]] = {
    "state": State, "plan": Plan, "code": CodeType, "record": Record, "lazy": Lazy,
    "handle": Handle,
}  # fmt: skip
_DESCRIPTION: Final = object.__basicsize__ + 3 * ctypes.sizeof(ctypes.c_void_p)
"""Where the descriptor of a field refers to its `PyMemberDef`."""


def _is_known() -> bool:
    return (
        sys.implementation.name == "cpython"
        and sys.version_info[:2] in VERSIONS
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and (object.__basicsize__, tuple.__basicsize__) == (16, recording.ITEMS)
        and bytes.__basicsize__ - 1 == recording.BYTES
        and "t" not in sys.abiflags
    )


def _offset(cls: type[Any], name: str) -> int:
    """Where instances of a class have a field.

    Raises:
        LookupError: that is not known.
    """
    place = ctypes.c_void_p.from_address(id(vars(cls)[name]) + _DESCRIPTION).value
    member = _Member.from_address(place or 0)
    if member.name != name.encode() or not 0 < member.offset < cls.__basicsize__:
        raise LookupError(name)
    return member.offset


recorder: Final = Recorder()
driver.when_loaded(recorder.quicken)
