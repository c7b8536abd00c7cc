"""Hostile calls, interpreted and compiled: they compute, or raise an error that names the call."""

from __future__ import annotations

import os
import re

import numpy as np

from tools.attack.hostile.agreement import COARSE, different
from tools.attack.hostile.calling import Call, Outcome, drawn_call, outcome
from tools.attack.hostile.surface import OPERATORS, Target, targets
from tools.attack.hostile.value import Draw
from tools.attack.verdict import PLAIN, WRONG, Case, Verdict

# Operators' names in Python's own errors.
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "divi", "floordiv": "divi", "mod": "%",
    "pow": "**",
    "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "lt": "<",
    "le": "<=", "gt": ">", "ge": ">=", "getitem": "subscript", "setitem": "subscript",
    "contains": "in", "neg": "-", "invert": "~",
}  # fmt: skip
OWN_FORM = re.compile(r"[\w.]+: .*expected ", re.DOTALL)  # of errors that say what refuses
COMPLEX = "complex numbers are interpreted, not compiled"
UNSPECIFIED = ("empty", "resize", "seed")  # in the names of functions whose values are any


def begin() -> Case:
    """Finds what there is to call."""
    targets()
    return case


def case(random: np.random.Generator) -> Verdict:
    """One call, made twice."""
    call = drawn_call(Draw(random))
    with open(os.dup(2), "w") as said:  # reported if the process dies
        print(call, file=said, flush=True)
    interpreted = outcome(call, compiled=False)
    if plain := _plain(call, interpreted):
        return plain
    if call.target.front == "graph":  # always compiled
        return Verdict()
    compiled = outcome(call, compiled=True)
    return _plain(call, compiled) or _compared(call, interpreted, compiled)


def _plain(call: Call, found: Outcome) -> Verdict | None:
    """The verdict on an error that does not name the operation."""
    error = found.error
    if error is None or any(c.__module__.startswith("weft") for c in type(error).__mro__):
        return None
    text = str(error).lower()
    if _users_own(text) or OWN_FORM.match(text) or any(name in text for name in _names(call)):
        return None
    kind = type(error).__name__
    return Verdict(PLAIN, f"{call.target.text}: {kind}", f"{call}\n{kind}: {error}"[:1000])


def _users_own(text: str) -> bool:
    return any(
        part in text for part in ("what the user's function raises", "_double()", "<lambda>()")
    )


def _names(call: Call) -> list[str]:
    """The names that an error may use for the operation."""
    both: list[Target] = [call.target, *([call.inner] if call.inner else [])]
    names = [name for target in both for name in target.names]
    operator = call.target.name.lstrip("ir")
    if call.target.name in OPERATORS:
        names += [operator, SYMBOLS.get(operator, operator)]
    return [name.lower() for name in names if name]


def _compared(call: Call, interpreted: Outcome, compiled: Outcome) -> Verdict:
    if COMPLEX in str(compiled.error):
        return Verdict()
    errors = [type(o.error).__name__ for o in (interpreted, compiled) if o.error is not None]
    if len(errors) == 1:
        which = "interpreted" if interpreted.error is not None else "compiled"
        error = interpreted.error or compiled.error
        what = f"{call.target.text}: refused only {which}"
        return Verdict(WRONG, what, f"{call}\n{errors[0]}: {error}"[:1000])
    if errors or any(part in call.target.name for part in UNSPECIFIED):
        return Verdict()
    coarse = any(name in str(call) for name in COARSE)
    if difference := different(interpreted.arrays, compiled.arrays, coarse):
        what = f"{call.target.text}: interpreted and compiled differ"
        return Verdict(WRONG, what, f"{call}\n{difference}"[:1000])
    return Verdict()
