"""`tf.linalg`: matrices."""

from weft.tf1.creation import eye
from weft.tf1.elementwise.arithmetic import matmul
from weft.tf1.elementwise.clip import global_norm
from weft.tf1.linalg.contraction import einsum, tensordot
from weft.tf1.linalg.diagonal import (
    matrix_band_part,
    matrix_diag,
    matrix_diag_part,
    matrix_set_diag,
    matrix_transpose,
    trace,
)  # fmt: skip
from weft.tf1.linalg.factorization import cholesky, matrix_determinant, matrix_inverse, matrix_solve
from weft.tf1.linalg.operator import LinearOperatorLowerTriangular
from weft.tf1.nn.normalization import l2_normalize
from weft.tf1.reduction import norm

band_part = matrix_band_part
det = matrix_determinant
diag = matrix_diag
diag_part = matrix_diag_part
inv = matrix_inverse
set_diag = matrix_set_diag
solve = matrix_solve
transpose = matrix_transpose

__all__ = [
    "LinearOperatorLowerTriangular", "band_part", "cholesky", "det", "diag", "diag_part", "einsum",
    "eye", "global_norm", "inv", "l2_normalize", "matmul", "norm", "set_diag", "solve",
    "tensordot", "trace", "transpose",
]  # fmt: skip
