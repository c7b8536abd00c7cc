"""`torch.sparse.FloatTensor` and others: sparse tensors of one dtype, as PyTorch once made them."""

from __future__ import annotations

from functools import partial
from typing import Final

from weft.ir import dtype as types
from weft.sparse import sparse_coo_tensor

__all__ = ["DoubleTensor", "FloatTensor", "IntTensor", "LongTensor"]

FloatTensor: Final = partial(sparse_coo_tensor, dtype=types.float32)
DoubleTensor: Final = partial(sparse_coo_tensor, dtype=types.float64)
IntTensor: Final = partial(sparse_coo_tensor, dtype=types.int32)
LongTensor: Final = partial(sparse_coo_tensor, dtype=types.int64)
