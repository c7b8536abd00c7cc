"""`tf.linalg`: matrices."""

from weft.tf1.creation import eye
from weft.tf1.elementwise.arithmetic import matmul
from weft.tf1.elementwise.clip import global_norm
from weft.tf1.linalg.contraction import einsum, tensordot
from weft.tf1.linalg.diagonal import diag as vector_diag
from weft.tf1.linalg.diagonal import diag_part as vector_diag_part
from weft.tf1.linalg.diagonal import (
    matrix_band_part,
    matrix_diag,
    matrix_diag_part,
    matrix_set_diag,
    matrix_transpose,
    trace,
)  # fmt: skip
from weft.tf1.linalg.factorization import (
    cholesky,
    cholesky_solve,
    log_matrix_determinant,
    logdet,
    lu,
    matrix_determinant,
    matrix_exponential,
    matrix_inverse,
    matrix_solve,
    matrix_solve_ls,
    matrix_triangular_solve,
    pinv,
    qr,
    self_adjoint_eig,
    self_adjoint_eigvals,
    svd,
)
from weft.tf1.linalg.operator import LinearOperatorLowerTriangular
from weft.tf1.linalg.vector import adjoint, cross, matrix_rank, matvec, normalize
from weft.tf1.nn.normalization import l2_normalize
from weft.tf1.reduction import norm

band_part = matrix_band_part
det = matrix_determinant
diag = matrix_diag
diag_part = matrix_diag_part
eigh = self_adjoint_eig
eigvalsh = self_adjoint_eigvals
expm = matrix_exponential
inv = matrix_inverse
lstsq = matrix_solve_ls
set_diag = matrix_set_diag
slogdet = log_matrix_determinant
solve = matrix_solve
tensor_diag = vector_diag
tensor_diag_part = vector_diag_part
transpose = matrix_transpose
triangular_solve = matrix_triangular_solve

__all__ = [
    "LinearOperatorLowerTriangular", "adjoint", "band_part", "cholesky", "cholesky_solve", "cross",
    "det", "diag", "diag_part", "eigh", "eigvalsh", "einsum", "expm", "eye", "global_norm", "inv",
    "l2_normalize", "logdet", "lstsq", "lu", "matmul", "matrix_rank", "matvec", "norm", "normalize",
    "pinv", "qr", "set_diag", "slogdet", "solve", "svd", "tensor_diag", "tensor_diag_part",
    "tensordot", "trace", "transpose", "triangular_solve",
]  # fmt: skip
