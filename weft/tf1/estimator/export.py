"""`tf.estimator.export`: what a model exports, and what it is given when it is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail

__all__ = [
    "ClassificationOutput", "PredictOutput", "RegressionOutput", "ServingInputReceiver",
    "build_parsing_serving_input_receiver_fn", "build_raw_serving_input_receiver_fn",
]  # fmt: skip

_DEFAULT = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class PredictOutput(NamedTuple):
    """Tensors by their names.

    Args:
        outputs: a tensor, or a dict of tensors.
    """

    outputs: Any


class ClassificationOutput(NamedTuple):
    """Classes and their scores.

    Args:
        scores: [batch, classes].
        classes: texts, [batch, classes].
    """

    scores: Any = None
    classes: Any = None


class RegressionOutput(NamedTuple):
    """Predicted numbers.

    Args:
        value: [batch].
    """

    value: Any


class ServingInputReceiver:
    """The features of a served model, and the tensors that a server feeds.

    Args:
        features: a tensor, or a dict of tensors.
        receiver_tensors: a tensor, or a dict of tensors.
        receiver_tensors_alternatives: other dicts of tensors that may be fed, by name.
    """

    def __init__(
        self, features: Any, receiver_tensors: Any,
        receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.features = _named(features, "feature")
        self.receiver_tensors = _named(receiver_tensors, "input")
        alternatives = dict(receiver_tensors_alternatives or {})
        self.receiver_tensors_alternatives = {
            name: _named(given, f"{name}_input") for name, given in alternatives.items()
        }


def _named(given: Any, name: str) -> dict[Any, Any]:
    return dict(given) if isinstance(given, Mapping) else {name: given}


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a placeholder for each feature.

    Args:
        features: tensors like those that are fed.
        default_batch_size: the rows of the placeholders; any by default.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        fed = {
            name: tf.placeholder(
                x.dtype, [default_batch_size, *x.shape.as_list()[1:]], name=x.op.name
            )
            for name, x in features.items()
        }
        return ServingInputReceiver(fed, fed)

    return serving_input_receiver_fn


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that parses fed `tf.train.Example`s.

    Args:
        feature_spec: as of `tf.parse_example`.
        default_batch_size: how many are fed; any number by default.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        fed = tf.placeholder(tf.string, [default_batch_size], name="input_example_tensor")
        features = tf.parse_example(fed, dict(feature_spec))
        return ServingInputReceiver(features, {"examples": fed})

    return serving_input_receiver_fn


def signatures(spec: Any, receiver: ServingInputReceiver) -> dict[str, Any]:
    """The signatures of what a model exports; those that the fed tensors do not fit are left out.

    Raises:
        ArgumentError: of several outputs, none is the default.
    """
    outputs = dict(spec.export_outputs or {_DEFAULT: PredictOutput(spec.predictions)})
    if len(outputs) == 1:
        outputs.setdefault(_DEFAULT, next(iter(outputs.values())))
    if _DEFAULT not in outputs:
        text = f"expected {_DEFAULT!r} among several export_outputs, got {list(outputs)}"
        raise fail(ArgumentError, f"Estimator.export_saved_model: {text}")
    feeds = {"": receiver.receiver_tensors} | receiver.receiver_tensors_alternatives
    found: dict[str, Any] = {}
    for prefix, fed in feeds.items():
        for name, output in outputs.items():
            made = _signature(output, fed)
            if made is not None:
                found[f"{prefix}:{name}" if prefix else name] = made
    return found


def _signature(output: Any, fed: Mapping[str, Any]) -> Any:
    if isinstance(output, PredictOutput):
        return tf.saved_model.predict_signature_def(fed, _named(output.outputs, "output"))
    (examples, *others) = fed.values()
    if others or examples.dtype.base_dtype != tf.string:
        return None  # classifiers and regressions are fed examples
    if isinstance(output, RegressionOutput):
        return tf.saved_model.regression_signature_def(examples, output.value)
    return tf.saved_model.classification_signature_def(examples, output.classes, output.scores)
