"""How one case of an attack ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

PASSED = "passed"
DEATH = "death"  # the process ended by a signal, or was killed for memory
HANG = "hang"  # it took longer than its limit
WRONG = "wrong"  # a wrong result, and no error
PLAIN = "plain"  # an error of Python's or NumPy's that does not name the operation
OTHER = "other"  # files left behind, errors in the attack itself
KINDS = (DEATH, HANG, WRONG, PLAIN, OTHER)


@dataclass(frozen=True)
class Verdict:
    """How a case ended.

    Attributes:
        kind: PASSED or one of KINDS.
        what: in few words; findings of one kind and the same words are told together.
        detail: what was done, and what came of it.
    """

    kind: str = PASSED
    what: str = ""
    detail: str = ""


Case = Callable[[np.random.Generator], Verdict]


@dataclass(frozen=True)
class Row:
    """A verdict and whose it is.

    Attributes:
        attack: the attack's name.
        case: the case's number.
        first: where the cases begin that led to it, in one process; `case` where it alone does.
    """

    attack: str
    case: int
    first: int
    kind: str
    what: str = ""
    detail: str = ""
