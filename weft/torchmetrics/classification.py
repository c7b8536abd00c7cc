"""Metrics of classification: of binary data, of classes and of labels, and by `task`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from weft.errors import ArgumentError
from weft.metrics import decided
from weft.ops.metric import curve, figure
from weft.torchmetrics.made import REQUIRED, Build, Made, made_class, made_function, snake
from weft.torchmetrics.metric import Metric

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
"""The functions by name; `weft.torchmetrics.functional` offers them."""
__all__ = [
    "AUROC",
    "ROC",
    "Accuracy",
    "AveragePrecision",
    "CalibrationError",
    "CohenKappa",
    "ConfusionMatrix",
    "F1Score",
    "FBetaScore",
    "HammingDistance",
    "JaccardIndex",
    "MatthewsCorrCoef",
    "NegativePredictiveValue",
    "Precision",
    "PrecisionRecallCurve",
    "Recall",
    "Specificity",
    "StatScores",
]
SIZES: Final = {"binary": (), "multiclass": ("num_classes",), "multilabel": ("num_labels",)}


def _family(
    name: str, build: Build, own: Mapping[str, Mapping[str, Any]], average: Any = None
) -> tuple[type[Metric], type[Metric], type[Metric], type[Metric]]:
    """The classes of a metric for each kind and by `task`; defines their functions as well.

    Args:
        name: of the class by `task`.
        build: makes the counts.
        own: the arguments of each kind in order, with defaults.
        average: the default by `task`; that of the classes otherwise.
    """
    classes: dict[str, type[Made]] = {}
    for task, order in own.items():
        doc = f"`{name}` of {_DATA[task]}; arguments: {', '.join(order)}."
        title, made = f"{task.capitalize()}{name}", partial(build, task)
        classes[task] = made_class(title, __name__, doc, order, made)
        low = f"{task}_{snake(name)}"
        FUNCTIONS[low] = made_function(low, __name__, doc, order, made)

    def choose(task: Any, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        if task not in own:
            raise ArgumentError.here(f"{name}: expected task of {list(own)}, got {task!r}")
        known = {k: v for k, v in kwargs.items() if k not in _BY_TASK or k in own[task]}
        if average is not None and "average" in own[task]:
            known.setdefault("average", average)
        return task, known

    def new(cls: type, task: str, *args: Any, **kwargs: Any) -> Metric:
        task, known = choose(task, kwargs | _positional(name, args))
        return classes[task](**known)

    def run(preds: Any, target: Any, task: str, *args: Any, **kwargs: Any) -> Any:
        task, known = choose(task, kwargs | _positional(name, args))
        return FUNCTIONS[f"{task}_{snake(name)}"](preds, target, **known)

    doc = f"`{name}` of the data that `task` names: {', '.join(map(repr, classes))}."
    body = {"__new__": new, "__module__": __name__, "__doc__": doc}
    run.__name__ = run.__qualname__ = snake(name)
    run.__doc__ = doc
    FUNCTIONS[run.__name__] = run
    by_task = type(name, (Metric,), body)
    classes.setdefault("multilabel", classes["multiclass"])
    return classes["binary"], classes["multiclass"], classes["multilabel"], by_task


_DATA: Final = {"binary": "binary data", "multiclass": "classes", "multilabel": "labels"}
_BY_TASK: Final = (
    "threshold", "num_classes", "num_labels", "average", "multidim_average", "top_k", "beta",
    "max_fpr",
)  # fmt: skip
"""Arguments by `task` that a kind without them leaves out."""


def _positional(name: str, args: Sequence[Any]) -> dict[str, Any]:
    """Positional arguments after `task`, by name."""
    first = ("beta",) if name == "FBetaScore" else ()
    return dict(zip((*first, "threshold", "num_classes", "num_labels"), args, strict=False))


def _orders(
    *middle: tuple[str, Any], first: Sequence[tuple[str, Any]] = (), threshold: bool = True,
    only: Sequence[str] = decided.KINDS, last: Sequence[tuple[str, Any]] = (), top: bool = False,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """The arguments of each kind in order: the size, the threshold, then those in the middle."""
    found: dict[str, dict[str, Any]] = {}
    for task in only:
        order = dict(first) | dict.fromkeys(SIZES[task], REQUIRED)
        order |= {"top_k": 1} if top and task == "multiclass" else {}
        order |= {"threshold": 0.5} if threshold and task != "multiclass" else {}
        order |= {k: v for k, v in middle if not (task == "binary" and k == "average")}
        found[task] = order | {"ignore_index": None, "validate_args": True} | dict(last)
    return found


def _sized(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments, with the number of classes or labels as `size`."""
    sizes = [given.pop(k) for k in ("num_classes", "num_labels") if k in given]
    return {**given, "size": sizes[0]} if sizes else given


def _counts(right: Any = None, of_classes: Any = None, less: bool = False) -> Build:
    """Counts with a figure; of classes another one.

    Args:
        less: whether 1 less the figure is meant.
    """

    def build(task: str, zero_division: float = 0.0, **told: Any) -> Any:
        told |= {"leaves_out": right is figure.overlap}
        chosen = (of_classes or right) if task == "multiclass" else right
        options = {"otherwise": zero_division}
        if "beta" in told:
            options["beta"] = told.pop("beta")
        found = (lambda *cells, **o: 1 - chosen(*cells, **o)) if less else chosen
        return decided.Counts(task, found, options=options, **_sized(told))

    return build


def _scores(task: str, **told: Any) -> Any:
    return decided.Scores(task, figure.recall, **_sized(told))


def _matrix(of: Any = None) -> Build:
    def build(task: str, **told: Any) -> Any:
        weights = {k: told.pop(k) for k in ("weights",) if k in told}
        made = None if of is None else lambda matrix: of(matrix, **weights)
        return decided.Matrix(task, figure=made, **_sized(told))

    return build


def _ranked(of: Any, recall: bool = False) -> Build:
    """A figure of scores.

    Args:
        recall: whether it is one of recall, which is unknown of a class without positives.
    """

    def build(task: str, max_fpr: float | None = None, **told: Any) -> Any:
        options = {} if max_fpr is None else {"most": max_fpr}
        if recall and task == "multiclass":
            options["otherwise"] = math.nan
        return decided.Ranked(task, lambda *x: of(*x, **options), **_sized(told))

    return build


def _area(scores: Any, positive: Any, levels: Any, most: float | None = None) -> float:
    return curve.area_to(scores, positive, most, levels)


def _calibration(task: str, n_bins: int = 15, **told: Any) -> Any:
    return decided.Calibration(task, bins=n_bins, **_sized(told))


_AVERAGE: Final = ("average", "macro")
_DIMENSIONS: Final = ("multidim_average", "global")
_ZERO: Final = (("zero_division", 0.0),)
_WHOLE: Final = _orders(_AVERAGE, _DIMENSIONS, last=_ZERO, top=True)
_BETA: Final = _orders(
    _AVERAGE, _DIMENSIONS, first=(("beta", REQUIRED),), last=_ZERO, top=True
)  # fmt: skip
_LEVELS: Final = ("thresholds", None)
_CURVES: Final = _orders(_LEVELS, threshold=False)
_AREAS: Final = _orders(_AVERAGE, _LEVELS, threshold=False)

BinaryAccuracy, MulticlassAccuracy, MultilabelAccuracy, Accuracy = _family(
    "Accuracy", _counts(figure.all_right, figure.recall), _WHOLE, "micro"
)
BinaryPrecision, MulticlassPrecision, MultilabelPrecision, Precision = _family(
    "Precision", _counts(figure.precision), _WHOLE, "micro"
)
BinaryRecall, MulticlassRecall, MultilabelRecall, Recall = _family(
    "Recall", _counts(figure.recall), _WHOLE, "micro"
)
BinaryF1Score, MulticlassF1Score, MultilabelF1Score, F1Score = _family(
    "F1Score", _counts(figure.f_score), _WHOLE, "micro"
)
BinaryFBetaScore, MulticlassFBetaScore, MultilabelFBetaScore, FBetaScore = _family(
    "FBetaScore", _counts(figure.f_score), _BETA, "micro"
)
BinarySpecificity, MulticlassSpecificity, MultilabelSpecificity, Specificity = _family(
    "Specificity", _counts(figure.specificity), _WHOLE, "micro"
)
(
    BinaryNegativePredictiveValue,
    MulticlassNegativePredictiveValue,
    MultilabelNegativePredictiveValue,
    NegativePredictiveValue,
) = _family("NegativePredictiveValue", _counts(figure.negative_precision), _WHOLE, "micro")
BinaryHammingDistance, MulticlassHammingDistance, MultilabelHammingDistance, HammingDistance = (
    _family("HammingDistance", _counts(figure.all_right, figure.recall, less=True), _WHOLE, "micro")
)
BinaryStatScores, MulticlassStatScores, MultilabelStatScores, StatScores = _family(
    "StatScores", _scores, _orders(_AVERAGE, _DIMENSIONS, top=True), "micro"
)
BinaryJaccardIndex, MulticlassJaccardIndex, MultilabelJaccardIndex, JaccardIndex = _family(
    "JaccardIndex", _counts(figure.overlap), _orders(_AVERAGE, last=_ZERO)
)
BinaryConfusionMatrix, MulticlassConfusionMatrix, MultilabelConfusionMatrix, ConfusionMatrix = (
    _family("ConfusionMatrix", _matrix(), _orders(last=(("normalize", None),)))
)
BinaryMatthewsCorrCoef, MulticlassMatthewsCorrCoef, MultilabelMatthewsCorrCoef, MatthewsCorrCoef = (
    _family("MatthewsCorrCoef", _matrix(figure.correlation_of_classes), _orders())
)
BinaryCohenKappa, MulticlassCohenKappa, _, CohenKappa = _family(
    "CohenKappa",
    _matrix(figure.kappa),
    _orders(only=("binary", "multiclass"), last=(("weights", None),)),
)
BinaryAUROC, MulticlassAUROC, MultilabelAUROC, AUROC = _family(
    "AUROC", _ranked(_area), _AREAS | {"binary": {"max_fpr": None} | _AREAS["binary"]}
)
BinaryAveragePrecision, MulticlassAveragePrecision, MultilabelAveragePrecision, AveragePrecision = (
    _family("AveragePrecision", _ranked(curve.average_precision, True), _AREAS)
)
BinaryROC, MulticlassROC, MultilabelROC, ROC = _family("ROC", _ranked(curve.roc), _CURVES)
(
    BinaryPrecisionRecallCurve,
    MulticlassPrecisionRecallCurve,
    MultilabelPrecisionRecallCurve,
    PrecisionRecallCurve,
) = _family("PrecisionRecallCurve", _ranked(curve.precision_recall, True), _CURVES)
BinaryCalibrationError, MulticlassCalibrationError, _, CalibrationError = _family(
    "CalibrationError",
    _calibration,
    _orders(("n_bins", 15), ("norm", "l1"), threshold=False, only=("binary", "multiclass")),
)
