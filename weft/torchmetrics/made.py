"""Classes and functions of metrics, made from the order of their arguments and their counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from weft.errors import ArgumentError
from weft.torchmetrics.metric import Counted, tensors

Build = Callable[..., Any]
REQUIRED: Final = object()
"""The default of an argument that must be given."""


class Made(Counted):
    """A metric made from a row of a table.

    Attributes:
        order: the arguments in order, with defaults.
        build: makes the counts from them.
    """

    order: ClassVar[Mapping[str, Any]]
    build: ClassVar[Build]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        told, rest = _bound(type(self).__name__, self.order, args, kwargs)
        super().__init__(type(self).build(**told), **rest)
        for name, value in told.items():
            setattr(self, name, value)


def _bound(
    name: str, order: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments by name with defaults, and those that are left over."""
    if len(args) > len(order):
        raise ArgumentError.here(f"{name}: expected at most {len(order)} arguments, got {args}")
    told = dict(order) | dict(zip(order, args, strict=False))
    told |= {k: v for k, v in kwargs.items() if k in order}
    if missing := [k for k, v in told.items() if v is REQUIRED]:
        raise ArgumentError.here(f"{name}: expected {missing}, got none")
    if told.pop("multidim_average", "global") != "global":
        raise ArgumentError.here(f"{name}: expected multidim_average='global', the only one here")
    told.pop("validate_args", None)
    return told, {k: v for k, v in kwargs.items() if k not in order}


def made_class(
    name: str, module: str, doc: str, order: Mapping[str, Any], build: Build
) -> type[Made]:
    """The class of a metric."""
    space = {"order": order, "build": staticmethod(build), "__module__": module, "__doc__": doc}
    return type(name, (Made,), space)


def made_function(
    name: str, module: str, doc: str, order: Mapping[str, Any], build: Build
) -> Callable[..., Any]:
    """The metric of one batch as a function."""

    def run(*args: Any, **kwargs: Any) -> Any:
        batch = {k: kwargs.pop(k) for k in ("preds", "target") if k in kwargs}
        taken = 2 - len(batch)
        told, rest = _bound(name, order, args[taken:], kwargs)
        if rest:
            raise ArgumentError.here(f"{name}: got unknown arguments {sorted(rest)}")
        return tensors(build(**told)(*args[:taken], **batch))

    run.__name__ = run.__qualname__ = name
    run.__module__, run.__doc__ = module, doc
    return run


def snake(name: str) -> str:
    """The name of a function, from that of a class.

    >>> snake("MeanSquaredError"), snake("AUROC"), snake("F1Score"), snake("BLEUScore")
    ('mean_squared_error', 'auroc', 'f1_score', 'bleu_score')
    """
    told = {"R2Score": "r2_score", "FBetaScore": "fbeta_score", "KLDivergence": "kl_divergence",
            "BLEUScore": "bleu_score", "ROUGEScore": "rouge_score"}  # fmt: skip
    if name in told or name.isupper():
        return told.get(name, name.lower())
    name = name.replace("CorrCoef", "Corrcoef")
    return "".join([f"_{c.lower()}" if c.isupper() else c for c in name]).lstrip("_")
