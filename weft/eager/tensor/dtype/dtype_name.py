"""PyTorch's names of tensor types: `"torch.FloatTensor"`."""

from __future__ import annotations

from typing import Any, Final

from weft.eager.tensor.dtype import promotion
from weft.eager.tensor.handle import Handle
from weft.ir import dtype as types
from weft.ir.dtype import DType

NAMES: Final = {
    types.bfloat16: "torch.BFloat16Tensor", types.bool_: "torch.BoolTensor",
    types.uint8: "torch.ByteTensor", types.int8: "torch.CharTensor",
    types.complex64: "torch.ComplexFloatTensor", types.complex128: "torch.ComplexDoubleTensor",
    types.float64: "torch.DoubleTensor", types.float32: "torch.FloatTensor",
    types.float16: "torch.HalfTensor", types.int32: "torch.IntTensor",
    types.int64: "torch.LongTensor", types.int16: "torch.ShortTensor",
    types.uint16: "torch.UInt16Tensor", types.uint32: "torch.UInt32Tensor",
    types.uint64: "torch.UInt64Tensor",
}  # fmt: skip
DTYPES: Final = {name.rpartition(".")[2]: dtype for dtype, name in NAMES.items()}


def dtype_meant(tensors: Any) -> DType | None:
    """The dtype of a typed tensor class, or of its name such as `"torch.FloatTensor"`."""
    if isinstance(tensors, str):
        return DTYPES.get(tensors.rpartition(".")[2])
    if not isinstance(tensors, type):
        return None
    if issubclass(tensors, Handle):
        return promotion.get_default_dtype()
    found: Any = getattr(tensors, "dtype", None)
    return found if isinstance(found, DType) else None


def name_of(dtype: DType) -> str:
    """PyTorch's name of the tensors of a dtype: `"torch.FloatTensor"`."""
    return NAMES[dtype]
