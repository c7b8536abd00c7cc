"""`Face`: an operation's public names in every front end, and its documentation.

An operation has it as the field `face` of its declaration. A formula, which is a function of
graph values, has it as a decorator. Front ends build their functions from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum, auto
from typing import Any, Final, TypeVar

from weft.ir.dtype import DType

__all__ = ["Face", "Out", "Takes", "source_of", "sources"]

Function = TypeVar("Function", bound=Callable[..., Any])


class Takes(Enum):
    """How an operation takes numbers, where that does not follow from its `dtype` rule.

    By the rule, integers become floating-point for an operation that refuses them, and everything
    becomes boolean for one that takes nothing else.
    """

    BY_RULE = auto()
    FLOATS = auto()
    """Integers become floating-point, although the rule takes them."""
    ROUNDING = auto()
    """Integers are returned as they are, complex numbers refused."""
    DIVISOR = auto()
    """For integers, a divisor of 0 is an error in PyTorch's functions."""
    ALONG = auto()
    """A cumulative operation along an axis, an argument; integers become 64-bit.

    A second name in NumPy is that of the array API standard, with `include_initial=`.
    """


class Out(Enum):
    """How a function takes `out=`."""

    SAME_KIND = auto()
    """Cast, if the tensor's dtype kind allows it; several results without a cast."""
    CASTABLE = auto()
    """Several results, each cast to any dtype that can hold it."""
    OWN_TYPE = auto()
    """Computed in their own dtype, not in that of `out`.

    Norms of complex numbers are real; integers have no NaN.
    """
    ANY_SHAPE = auto()
    """Reshaped to any shape with as many elements, in row-major order."""
    EXACT = auto()
    """Only into a tensor of the same dtype; `all` and `any` also into uint8."""


@dataclass(frozen=True)
class Face:
    """Public names of an operation, in each front end several separated by spaces; no name, none.

    Attributes:
        doc: one sentence, and what else users have to know.
        example: arguments and result of the function `weft.NAME`, such as `"[1, 4] -> [1, 2]"`.
        torch: functions `weft.NAME` and methods of tensors; with an underscore at the end also in
            place: `"exp_"` stands for `weft.exp`, `x.exp()` and `x.exp_()`. By default the name of
            the operation.
        numpy: functions of `weft.numpy`.
        tf1: the type of TensorFlow's operation, after a slash the default name of its node where
            that differs, then functions of both `tf` and `tf.math`, by default the operation's
            name: `"Exp"`, `"IsNan is_nan"`, `"AddV2/Add add"`; or of one module:
            `"Invert bitwise.invert"`.
        special: functions of `weft.special`.
        scipy: functions of `weft.scipy.special`.
        dtensor: whether it is a method of `weft.distributed.tensor.DTensor`, too.
        takes: which numbers, where the rule of dtypes does not say it.
        booleans: the dtype of the result for booleans, which PyTorch's function takes as numbers.
        wide: narrower numbers are computed in this dtype and rounded once. Formulas use float32 by
            default, operations their own.
        out: how PyTorch's function takes `out=`.
    """

    doc: str = ""
    example: str = ""
    _: KW_ONLY
    torch: str | None = None
    numpy: str = ""
    tf1: str = ""
    special: str = ""
    scipy: str = ""
    dtensor: bool = False
    takes: Takes = Takes.BY_RULE
    booleans: DType | None = None
    wide: DType | None = None
    out: Out = Out.SAME_KIND

    def names(self, front_end: str) -> list[str]:
        """The names in a front end, without marks.

        >>> Face(torch="asin_ arcsin_", tf1="Asin asin").names("torch")
        ['asin', 'arcsin']
        """
        words = (getattr(self, front_end) or "").split()
        return [word.rstrip("_") for word in (words[1:] if front_end == "tf1" else words)]

    def documented(self) -> str:
        """The docstring of the function `weft.NAME`."""
        if not self.example:
            return self.doc
        arguments, _, result = self.example.partition(" -> ")
        arguments = re.sub(r"\[[^]]*\]", r"wf.tensor(\g<0>)", arguments)
        name = self.names("torch")[0]
        return f"{self.doc}\n\n>>> wf.{name}({arguments})\ntensor({result})"

    def completed(self, name: str, doc: str = "") -> Face:
        """The face with its defaults filled in.

        Args:
            name: of the operation or formula.
            doc: the documentation of a formula.
        """
        torch = name if self.torch is None else self.torch
        tf1 = f"{self.tf1} {name}" if self.tf1 and " " not in self.tf1 else self.tf1
        return replace(self, torch=torch, tf1=tf1, doc=self.doc or doc)

    def __call__(self, formula: Function) -> Function:
        """Declares it for a formula, by default with the first paragraph of its docstring."""
        name = formula.__name__
        vars(formula)["face"] = self.completed(name, (formula.__doc__ or "").partition("\n\n")[0])
        FACES[name] = formula
        return formula


FACES: Final[dict[str, Any]] = {}
"""Operations and formulas with a face by their names; each has the attribute `face`."""


def own_name(source: Any) -> str:
    """The name of an operation or formula, by which `FACES` has it."""
    return getattr(source, "name", None) or source.__name__


def arity(source: Any) -> int:
    """How many tensors an operation or a formula takes."""
    inputs = getattr(source, "inputs", None)
    return source.__code__.co_argcount if inputs is None else len(inputs)


def sources(front_end: str) -> dict[str, Any]:
    """The operations and formulas of a front end by their public names.

    Except those in modules of `weft.tf1`.
    """
    return {
        name: source
        for source in FACES.values()
        for name in source.face.names(front_end)
        if "." not in name
    }


def source_of(front_end: str, name: str) -> Any:
    """The operation or formula that a front end shows under this name; `None` if there is none."""
    return sources(front_end).get(name)
