"""Records a call of the eager front end as Python would, with CPython's own functions.

What `State.record_one` and `handle_of` do takes Python 1.3 us, of which most is the interpreter's:
about eighty instructions. Here it takes a quarter of that. Python calls this function directly, as
one of its own in C; where anything is unusual, the function calls the one in Python.
"""

from __future__ import annotations

import ctypes
from typing import Final

from weft.codegen.procedure import Local, Procedure, Ref, Word, i64, pointer, routine

FUNCTIONS: Final = (
    "PyType_GenericAlloc", "PyWeakref_NewRef", "PyTuple_New", "PyTuple_Size", "PyList_Size",
    "PyList_Append", "PyIter_Next", "PyLong_AsLong", "PyLong_FromLong", "PyFrame_GetCode",
    "PyFrame_GetBack", "PyFrame_GetLasti", "PyDict_GetItemWithError", "PyObject_Vectorcall",
    "Py_IncRef", "Py_DecRef",
)  # fmt: skip
"""CPython's, all of its stable interface or documented, and holding the GIL."""
OBJECTS: Final = (
    "record_class", "lazy_class", "none", "true", "false", "zero", "serials", "in_package",
    "inferring", "otherwise",
)  # fmt: skip
"""What the function refers to; `otherwise` is the function in Python."""
SLOTS: Final = {
    "state": ("pending", "limit", "grad_mode"),
    "plan": ("types", "continuous"),
    "code": ("co_filename",),
    "record": ("plan", "inputs", "serial", "freed", "results", "code", "place"),
    "lazy": (
        "type", "record", "index", "tracked", "array", "owner", "leaf", "hooks", "home", "loan",
    ),
    "handle": ("shown", "window", "_grad", "_version", "views"),
}  # fmt: skip
"""Fields of objects, whose offsets Python tells."""
ITEMS: Final = 24
"""Where the items of a tuple lie."""
BYTES: Final = 32
"""Where the contents of `bytes` lie."""


def slot(of: str, name: str) -> str:
    """The field of `Table` that holds the offset of a field."""
    return f"{of}_{name}"


class Table(ctypes.Structure):
    """What the function needs of the interpreter."""

    _fields_ = [
        *[(name, pointer) for name in (*FUNCTIONS, *OBJECTS)],
        *[(slot(of, name), i64) for of, names in SLOTS.items() for name in names],
    ]  # fmt: skip


class _Python:
    """Writes uses of Python's objects."""

    def __init__(self, f: Procedure, table: Ref) -> None:
        self._f = f
        self._table = table

    def call(self, name: str, result: str, *args: Word | int) -> Word:
        """The result of one of CPython's functions."""
        return self._table[name].call(result, *args)

    def __getitem__(self, name: str) -> Word:
        """An object."""
        return self._table[name]

    def taken(self, x: Word) -> Word:
        """An object, with a reference of its own."""
        self.call("Py_IncRef", "void", x)
        return x

    def field(self, x: Word, of: str, name: str) -> Ref:
        """A field of an object."""
        offset = self._table[slot(of, name)]
        return Ref(self._f, self._f.offset(x.reg, offset.reg), pointer)


@routine(pointer, pointer, i64, result=pointer)
def record(f: Procedure, own: Word, args: Word, count: Word) -> Word:
    """The tensor of a recorded call, given (class, state, plan, inputs, frame)."""
    py = _Python(f, Ref(f, f.offset(own.reg, BYTES), Table))
    given = args.to(pointer)
    kind, state, plan, inputs, frame = (given.at(i).load() for i in range(5))
    none = py["none"]
    usual = f.local(count.equals(5))
    flows = py.field(plan, "plan", "continuous").load().equals(py["true"])
    flows = flows & py.field(state, "state", "grad_mode").load().equals(py["true"])
    tracked = f.local(f.constant(0, "i1"))
    items = Ref(f, f.offset(inputs.reg, ITEMS), pointer)
    with f.count(py.call("PyTuple_Size", "i64", inputs)) as i:
        x = items.at(i).load()
        usual.set(usual & py.field(x, "lazy", "loan").load().equals(none))
        tracked.set(tracked | py.field(x, "lazy", "tracked").load().equals(py["true"]))
    pending = py.field(state, "state", "pending").load()
    limit = py.call("PyLong_AsLong", "i64", py.field(state, "state", "limit").load())
    usual.set(usual & (py.call("PyList_Size", "i64", pending) < limit))
    usual.set(usual & py.call("PyList_Size", "i64", py["inferring"]).equals(0))
    code, place = _line(f, py, frame, usual)
    with f.when(~usual):
        with f.when(~code.is_null()):
            py.call("Py_DecRef", "void", code)
            py.call("Py_DecRef", "void", place)
        f.give(py.call("PyObject_Vectorcall", "ptr", py["otherwise"], args, count, f.null()))
    with f.when(code.is_null()):
        code.set(py.taken(none))
        place.set(f.null())
    made = _made(f, py, kind, plan, inputs, flows & tracked, code, place)
    record = py.field(py.field(made, "handle", "shown").load(), "lazy", "record").load()
    pending = py.field(state, "state", "pending").load()  # collected garbage may have computed it
    py.call("PyList_Append", "i32", pending, record)
    return made


def _line(f: Procedure, py: _Python, frame: Word, usual: Local) -> tuple[Local, Local]:
    """The code and the place of the innermost frame outside of the package; null if there is none.

    It is unusual that nobody knows whether a file belongs to the package.
    """
    code, place, at = f.local(f.null()), f.local(f.null()), f.local(frame)
    py.taken(at)
    with f.when(~usual):
        py.call("Py_DecRef", "void", at)
        at.set(py["none"])
    with f.repeat() as frames:
        frames.leave(at.is_null() | at.equals(py["none"]))
        found = py.call("PyFrame_GetCode", "ptr", at)
        file = py.field(found, "code", "co_filename").load()
        inside = py.call("PyDict_GetItemWithError", "ptr", py["in_package"], file)
        usual.set(usual & ~inside.is_null())
        with f.when(~inside.equals(py["true"])):
            code.set(found)
            place.set(
                py.call("PyLong_FromLong", "ptr", py.call("PyFrame_GetLasti", "i32", at).wide())
            )
            py.call("Py_DecRef", "void", at)
            frames.leave()
        py.call("Py_DecRef", "void", found)
        back = py.call("PyFrame_GetBack", "ptr", at)
        py.call("Py_DecRef", "void", at)
        at.set(back)
    return code, place


def _check(f: Procedure, *made: Word) -> None:
    """Returns null, as there is an exception, if one could not be made."""
    missing = f.local(f.constant(0, "i1"))
    for x in made:
        missing.set(missing | x.is_null())
    with f.when(missing):
        f.give(f.null())


def _made(
    f: Procedure, py: _Python, kind: Word, plan: Word, inputs: Word, tracked: Word, code: Word,
    place: Word,
) -> Word:  # fmt: skip
    """The tensor, its value and the record."""
    record = py.call("PyType_GenericAlloc", "ptr", py["record_class"], 0)
    value = py.call("PyType_GenericAlloc", "ptr", py["lazy_class"], 0)
    handle = py.call("PyType_GenericAlloc", "ptr", kind, 0)
    results = py.call("PyTuple_New", "ptr", 1)
    serial = py.call("PyIter_Next", "ptr", py["serials"])
    _check(f, record, value, handle, results, serial)
    first = py.call("PyWeakref_NewRef", "ptr", value, f.null())
    owner = py.call("PyWeakref_NewRef", "ptr", handle, f.null())
    _check(f, first, owner)
    Ref(f, f.offset(results.reg, ITEMS), pointer).store(first)
    types = py.field(plan, "plan", "types").load()
    none, zero = py["none"], py["zero"]

    def fill(x: Word, of: str, owned: dict[str, Word], **shared: Word) -> None:
        for name, y in owned.items():
            py.field(x, of, name).store(y)
        for name, y in shared.items():
            py.field(x, of, name).store(py.taken(y))

    owned = {"serial": serial, "results": results, "code": code, "place": place}
    fill(record, "record", owned, plan=plan, inputs=inputs, freed=none)
    type_ = Ref(f, f.offset(types.reg, ITEMS), pointer).load()
    flag = f.select(tracked, py["true"], py["false"])
    fill(
        value, "lazy", {"record": record, "owner": owner}, type=type_, index=zero, tracked=flag,
        array=none, leaf=none, hooks=none, home=none, loan=none,
    )  # fmt: skip
    fill(
        handle, "handle", {"shown": value}, window=none, _grad=none, _version=zero, views=zero
    )  # fmt: skip
    return handle
