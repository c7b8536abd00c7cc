"""`tf.linalg`: matrices."""

from weft.tf1.clip_ops import global_norm
from weft.tf1.einsum_ops import einsum, tensordot
from weft.tf1.fill_ops import eye
from weft.tf1.linalg_ops import cholesky, matrix_determinant, matrix_inverse, matrix_solve
from weft.tf1.math_ops import matmul
from weft.tf1.matrix_ops import (
    matrix_band_part,
    matrix_diag,
    matrix_diag_part,
    matrix_set_diag,
    matrix_transpose,
    trace,
)  # fmt: skip
from weft.tf1.norm_ops import l2_normalize
from weft.tf1.reduction_ops import norm

band_part = matrix_band_part
det = matrix_determinant
diag = matrix_diag
diag_part = matrix_diag_part
inv = matrix_inverse
set_diag = matrix_set_diag
solve = matrix_solve
transpose = matrix_transpose

__all__ = [
    "band_part", "cholesky", "det", "diag", "diag_part", "einsum", "eye", "global_norm", "inv",
    "l2_normalize", "matmul", "norm", "set_diag", "solve", "tensordot", "trace", "transpose",
]  # fmt: skip
