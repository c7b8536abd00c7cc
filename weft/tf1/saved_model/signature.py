"""Signatures: which tensors a saved model is fed and asked for, by names of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from weft.tf1.framework import dtypes
from weft.tf1.framework.graph import Graph, get_default_graph
from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import TensorShape
from weft.tf1.saved_model.constants import signature_constants as keys

__all__ = [
    "build_signature_def", "build_tensor_info", "classification_signature_def",
    "get_tensor_from_tensor_info", "is_valid_signature", "predict_signature_def",
    "regression_signature_def",
]  # fmt: skip


class TensorInfo(NamedTuple):
    """A tensor of a saved model.

    Attributes:
        name: in its graph.
        dtype: the element type.
        tensor_shape: the shape.
    """

    name: str
    dtype: Any
    tensor_shape: TensorShape


class SignatureDef(NamedTuple):
    """What a saved model is fed and asked for.

    Attributes:
        inputs: by name.
        outputs: by name.
        method_name: what a server calls it for.
    """

    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]
    method_name: str

    def described(self) -> list[Any]:
        """The signature as JSON."""
        parts = [
            {k: [x.name, x.dtype.name, x.tensor_shape.as_dims()] for k, x in part.items()}
            for part in (self.inputs, self.outputs)
        ]
        return [*parts, self.method_name]

    @classmethod
    def of(cls, told: list[Any]) -> Self:
        """The signature of `described`."""
        inputs, outputs = [
            {k: TensorInfo(n, dtypes.as_dtype(d), TensorShape(s)) for k, (n, d, s) in part.items()}
            for part in told[:2]
        ]
        return cls(inputs, outputs, told[2])


def build_tensor_info(tensor: Any) -> TensorInfo:
    """The record of a tensor.

    Args:
        tensor: a tensor or a variable.
    """
    found: Tensor = tensor.graph.as_graph_element(tensor, allow_operation=False)
    return TensorInfo(found.name, found.dtype.base_dtype, found.shape)


def get_tensor_from_tensor_info(
    tensor_info: TensorInfo, graph: Graph | None = None, import_scope: str | None = None
) -> Tensor:
    """The tensor of a record.

    Args:
        tensor_info: the record.
        graph: by default the default graph.
        import_scope: what names begin with.

    Raises:
        GraphError: the graph has none of this name.
    """
    name = f"{import_scope}/{tensor_info.name}" if import_scope else tensor_info.name
    return (graph or get_default_graph()).get_tensor_by_name(name)


def build_signature_def(
    inputs: Mapping[str, TensorInfo] | None = None,
    outputs: Mapping[str, TensorInfo] | None = None, method_name: str | None = None,
) -> SignatureDef:  # fmt: skip
    """A signature of records of tensors.

    Args:
        inputs: what is fed, by name.
        outputs: what is computed, by name.
        method_name: what a server calls it for.
    """
    return SignatureDef(dict(inputs or {}), dict(outputs or {}), method_name or "")


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    """A signature of tensors.

    Args:
        inputs: what is fed, by name.
        outputs: what is computed, by name.
    """
    return _of_tensors(inputs, outputs, keys.PREDICT_METHOD_NAME)


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> SignatureDef:
    """A signature of a classifier.

    Args:
        examples: what is fed.
        classes: texts, or `None`.
        scores: of the classes, or `None`.
    """
    told = {keys.CLASSIFY_OUTPUT_CLASSES: classes, keys.CLASSIFY_OUTPUT_SCORES: scores}
    outputs = {name: tensor for name, tensor in told.items() if tensor is not None}
    return _of_tensors({keys.CLASSIFY_INPUTS: examples}, outputs, keys.CLASSIFY_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> SignatureDef:
    """A signature of a regression.

    Args:
        examples: what is fed.
        predictions: what is computed.
    """
    outputs = {keys.REGRESS_OUTPUTS: predictions}
    return _of_tensors({keys.REGRESS_INPUTS: examples}, outputs, keys.REGRESS_METHOD_NAME)


def _of_tensors(inputs: Mapping[str, Any], outputs: Mapping[str, Any], method: str) -> SignatureDef:
    fed = {name: build_tensor_info(x) for name, x in inputs.items()}
    return SignatureDef(fed, {name: build_tensor_info(y) for name, y in outputs.items()}, method)


def is_valid_signature(signature_def: SignatureDef | None) -> bool:
    """Whether a server can call it: it has inputs, outputs and a known method.

    Args:
        signature_def: the signature.
    """
    methods = (keys.CLASSIFY_METHOD_NAME, keys.PREDICT_METHOD_NAME, keys.REGRESS_METHOD_NAME)
    if signature_def is None or signature_def.method_name not in methods:
        return False
    return bool(signature_def.inputs and signature_def.outputs)
