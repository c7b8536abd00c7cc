"""Made by `python -m tools.stubs`."""

from typing import Any

from weft.eager.functions.compilation import compile as compile
from weft.eager.functions.creation.arange import arange as arange
from weft.eager.functions.creation.arange import eye as eye
from weft.eager.functions.creation.arange import linspace as linspace
from weft.eager.functions.creation.arange import logspace as logspace
from weft.eager.functions.creation.arange import meshgrid as meshgrid
from weft.eager.functions.creation.arange import range as range
from weft.eager.functions.creation.arange import tril_indices as tril_indices
from weft.eager.functions.creation.arange import triu_indices as triu_indices
from weft.eager.functions.creation.constructor import as_tensor as as_tensor
from weft.eager.functions.creation.constructor import empty as empty
from weft.eager.functions.creation.constructor import empty_like as empty_like
from weft.eager.functions.creation.constructor import from_numpy as from_numpy
from weft.eager.functions.creation.constructor import full as full
from weft.eager.functions.creation.constructor import full_like as full_like
from weft.eager.functions.creation.constructor import ones as ones
from weft.eager.functions.creation.constructor import ones_like as ones_like
from weft.eager.functions.creation.constructor import scalar_tensor as scalar_tensor
from weft.eager.functions.creation.constructor import tensor as tensor
from weft.eager.functions.creation.constructor import zeros as zeros
from weft.eager.functions.creation.constructor import zeros_like as zeros_like
from weft.eager.functions.creation.shared_memory import asarray as asarray
from weft.eager.functions.creation.shared_memory import from_file as from_file
from weft.eager.functions.creation.shared_memory import frombuffer as frombuffer
from weft.eager.functions.creation.typed_tensor import BFloat16Tensor as BFloat16Tensor
from weft.eager.functions.creation.typed_tensor import BoolTensor as BoolTensor
from weft.eager.functions.creation.typed_tensor import ByteTensor as ByteTensor
from weft.eager.functions.creation.typed_tensor import CharTensor as CharTensor
from weft.eager.functions.creation.typed_tensor import DoubleTensor as DoubleTensor
from weft.eager.functions.creation.typed_tensor import FloatTensor as FloatTensor
from weft.eager.functions.creation.typed_tensor import HalfTensor as HalfTensor
from weft.eager.functions.creation.typed_tensor import IntTensor as IntTensor
from weft.eager.functions.creation.typed_tensor import LongTensor as LongTensor
from weft.eager.functions.creation.typed_tensor import ShortTensor as ShortTensor
from weft.eager.functions.creation.window import bartlett_window as bartlett_window
from weft.eager.functions.creation.window import blackman_window as blackman_window
from weft.eager.functions.creation.window import hamming_window as hamming_window
from weft.eager.functions.creation.window import hann_window as hann_window
from weft.eager.functions.creation.window import kaiser_window as kaiser_window
from weft.eager.functions.dtype_alias import bool as bool
from weft.eager.functions.dtype_alias import cdouble as cdouble
from weft.eager.functions.dtype_alias import cfloat as cfloat
from weft.eager.functions.dtype_alias import double as double
from weft.eager.functions.dtype_alias import e as e
from weft.eager.functions.dtype_alias import float as float
from weft.eager.functions.dtype_alias import half as half
from weft.eager.functions.dtype_alias import inf as inf
from weft.eager.functions.dtype_alias import int as int
from weft.eager.functions.dtype_alias import long as long
from weft.eager.functions.dtype_alias import nan as nan
from weft.eager.functions.dtype_alias import newaxis as newaxis
from weft.eager.functions.dtype_alias import pi as pi
from weft.eager.functions.dtype_alias import short as short
from weft.eager.functions.elementwise.activation import celu as celu
from weft.eager.functions.elementwise.activation import elu as elu
from weft.eager.functions.elementwise.activation import gelu as gelu
from weft.eager.functions.elementwise.activation import hardshrink as hardshrink
from weft.eager.functions.elementwise.activation import leaky_relu as leaky_relu
from weft.eager.functions.elementwise.binary import add as add
from weft.eager.functions.elementwise.binary import allclose as allclose
from weft.eager.functions.elementwise.binary import divide as div
from weft.eager.functions.elementwise.binary import divide as divide
from weft.eager.functions.elementwise.binary import divide as true_divide
from weft.eager.functions.elementwise.binary import equal as equal
from weft.eager.functions.elementwise.binary import float_power as float_power
from weft.eager.functions.elementwise.binary import fmax as fmax
from weft.eager.functions.elementwise.binary import fmin as fmin
from weft.eager.functions.elementwise.binary import heaviside as heaviside
from weft.eager.functions.elementwise.binary import isclose as isclose
from weft.eager.functions.elementwise.binary import maximum as maximum
from weft.eager.functions.elementwise.binary import minimum as minimum
from weft.eager.functions.elementwise.binary import power as pow
from weft.eager.functions.elementwise.binary import power as power
from weft.eager.functions.elementwise.binary import rsub as rsub
from weft.eager.functions.elementwise.binary import subtract as sub
from weft.eager.functions.elementwise.binary import subtract as subtract
from weft.eager.functions.elementwise.complex_number import adjoint as adjoint
from weft.eager.functions.elementwise.complex_number import complex as complex
from weft.eager.functions.elementwise.complex_number import conj as conj
from weft.eager.functions.elementwise.complex_number import conj_physical as conj_physical
from weft.eager.functions.elementwise.complex_number import imag as imag
from weft.eager.functions.elementwise.complex_number import is_conj as is_conj
from weft.eager.functions.elementwise.complex_number import is_neg as is_neg
from weft.eager.functions.elementwise.complex_number import isreal as isreal
from weft.eager.functions.elementwise.complex_number import polar as polar
from weft.eager.functions.elementwise.complex_number import real as real
from weft.eager.functions.elementwise.complex_number import resolve_conj as resolve_conj
from weft.eager.functions.elementwise.complex_number import resolve_neg as resolve_neg
from weft.eager.functions.elementwise.complex_number import view_as_complex as view_as_complex
from weft.eager.functions.elementwise.complex_number import view_as_real as view_as_real
from weft.eager.functions.elementwise.declared import abs as abs
from weft.eager.functions.elementwise.declared import abs as absolute
from weft.eager.functions.elementwise.declared import acos as acos
from weft.eager.functions.elementwise.declared import acos as arccos
from weft.eager.functions.elementwise.declared import acosh as acosh
from weft.eager.functions.elementwise.declared import acosh as arccosh
from weft.eager.functions.elementwise.declared import angle as angle
from weft.eager.functions.elementwise.declared import asin as arcsin
from weft.eager.functions.elementwise.declared import asin as asin
from weft.eager.functions.elementwise.declared import asinh as arcsinh
from weft.eager.functions.elementwise.declared import asinh as asinh
from weft.eager.functions.elementwise.declared import atan as arctan
from weft.eager.functions.elementwise.declared import atan as atan
from weft.eager.functions.elementwise.declared import atan2 as arctan2
from weft.eager.functions.elementwise.declared import atan2 as atan2
from weft.eager.functions.elementwise.declared import atanh as arctanh
from weft.eager.functions.elementwise.declared import atanh as atanh
from weft.eager.functions.elementwise.declared import bitwise_and as bitwise_and
from weft.eager.functions.elementwise.declared import bitwise_not as bitwise_not
from weft.eager.functions.elementwise.declared import bitwise_not as invert
from weft.eager.functions.elementwise.declared import bitwise_or as bitwise_or
from weft.eager.functions.elementwise.declared import bitwise_xor as bitwise_xor
from weft.eager.functions.elementwise.declared import cbrt as cbrt
from weft.eager.functions.elementwise.declared import ceil as ceil
from weft.eager.functions.elementwise.declared import copysign as copysign
from weft.eager.functions.elementwise.declared import cos as cos
from weft.eager.functions.elementwise.declared import cosh as cosh
from weft.eager.functions.elementwise.declared import cumprod as cumprod
from weft.eager.functions.elementwise.declared import cumsum as cumsum
from weft.eager.functions.elementwise.declared import deg2rad as deg2rad
from weft.eager.functions.elementwise.declared import digamma as digamma
from weft.eager.functions.elementwise.declared import equal as eq
from weft.eager.functions.elementwise.declared import erf as erf
from weft.eager.functions.elementwise.declared import erfc as erfc
from weft.eager.functions.elementwise.declared import erfinv as erfinv
from weft.eager.functions.elementwise.declared import exp as exp
from weft.eager.functions.elementwise.declared import exp2 as exp2
from weft.eager.functions.elementwise.declared import expm1 as expm1
from weft.eager.functions.elementwise.declared import floor as floor
from weft.eager.functions.elementwise.declared import floor_divide as floor_divide
from weft.eager.functions.elementwise.declared import fmod as fmod
from weft.eager.functions.elementwise.declared import greater as greater
from weft.eager.functions.elementwise.declared import greater as gt
from weft.eager.functions.elementwise.declared import greater_equal as ge
from weft.eager.functions.elementwise.declared import greater_equal as greater_equal
from weft.eager.functions.elementwise.declared import hypot as hypot
from weft.eager.functions.elementwise.declared import i0 as i0
from weft.eager.functions.elementwise.declared import identity as positive
from weft.eager.functions.elementwise.declared import isfinite as isfinite
from weft.eager.functions.elementwise.declared import isinf as isinf
from weft.eager.functions.elementwise.declared import isnan as isnan
from weft.eager.functions.elementwise.declared import left_shift as bitwise_left_shift
from weft.eager.functions.elementwise.declared import left_shift as left_shift
from weft.eager.functions.elementwise.declared import less as less
from weft.eager.functions.elementwise.declared import less as lt
from weft.eager.functions.elementwise.declared import less_equal as le
from weft.eager.functions.elementwise.declared import less_equal as less_equal
from weft.eager.functions.elementwise.declared import lgamma as lgamma
from weft.eager.functions.elementwise.declared import log as log
from weft.eager.functions.elementwise.declared import log10 as log10
from weft.eager.functions.elementwise.declared import log1p as log1p
from weft.eager.functions.elementwise.declared import log2 as log2
from weft.eager.functions.elementwise.declared import logaddexp as logaddexp
from weft.eager.functions.elementwise.declared import logaddexp2 as logaddexp2
from weft.eager.functions.elementwise.declared import logical_and as logical_and
from weft.eager.functions.elementwise.declared import logical_not as logical_not
from weft.eager.functions.elementwise.declared import logical_or as logical_or
from weft.eager.functions.elementwise.declared import logical_xor as logical_xor
from weft.eager.functions.elementwise.declared import multiply as mul
from weft.eager.functions.elementwise.declared import multiply as multiply
from weft.eager.functions.elementwise.declared import negative as neg
from weft.eager.functions.elementwise.declared import negative as negative
from weft.eager.functions.elementwise.declared import nextafter as nextafter
from weft.eager.functions.elementwise.declared import not_equal as ne
from weft.eager.functions.elementwise.declared import not_equal as not_equal
from weft.eager.functions.elementwise.declared import rad2deg as rad2deg
from weft.eager.functions.elementwise.declared import reciprocal as reciprocal
from weft.eager.functions.elementwise.declared import relu as relu
from weft.eager.functions.elementwise.declared import relu6 as relu6
from weft.eager.functions.elementwise.declared import remainder as remainder
from weft.eager.functions.elementwise.declared import right_shift as bitwise_right_shift
from weft.eager.functions.elementwise.declared import right_shift as right_shift
from weft.eager.functions.elementwise.declared import rsqrt as rsqrt
from weft.eager.functions.elementwise.declared import selu as selu
from weft.eager.functions.elementwise.declared import sigmoid as expit
from weft.eager.functions.elementwise.declared import sigmoid as sigmoid
from weft.eager.functions.elementwise.declared import sign as sgn
from weft.eager.functions.elementwise.declared import sign as sign
from weft.eager.functions.elementwise.declared import signbit as signbit
from weft.eager.functions.elementwise.declared import silu as silu
from weft.eager.functions.elementwise.declared import sin as sin
from weft.eager.functions.elementwise.declared import sinc as sinc
from weft.eager.functions.elementwise.declared import sinh as sinh
from weft.eager.functions.elementwise.declared import softplus as softplus
from weft.eager.functions.elementwise.declared import sqrt as sqrt
from weft.eager.functions.elementwise.declared import square as square
from weft.eager.functions.elementwise.declared import tan as tan
from weft.eager.functions.elementwise.declared import tanh as tanh
from weft.eager.functions.elementwise.declared import trunc as trunc
from weft.eager.functions.elementwise.declared import xlogy as xlogy
from weft.eager.functions.elementwise.integer import frexp as frexp
from weft.eager.functions.elementwise.integer import gcd as gcd
from weft.eager.functions.elementwise.integer import lcm as lcm
from weft.eager.functions.elementwise.integer import ldexp as ldexp
from weft.eager.functions.elementwise.integer import unravel_index as unravel_index
from weft.eager.functions.elementwise.selection import addcdiv as addcdiv
from weft.eager.functions.elementwise.selection import addcmul as addcmul
from weft.eager.functions.elementwise.selection import clamp as clamp
from weft.eager.functions.elementwise.selection import clamp_max as clamp_max
from weft.eager.functions.elementwise.selection import clamp_min as clamp_min
from weft.eager.functions.elementwise.selection import clip as clip
from weft.eager.functions.elementwise.selection import lerp as lerp
from weft.eager.functions.elementwise.selection import masked_fill as masked_fill
from weft.eager.functions.elementwise.unary import fix as fix
from weft.eager.functions.elementwise.unary import frac as frac
from weft.eager.functions.elementwise.unary import isneginf as isneginf
from weft.eager.functions.elementwise.unary import isposinf as isposinf
from weft.eager.functions.elementwise.unary import logit as logit
from weft.eager.functions.elementwise.unary import nan_to_num as nan_to_num
from weft.eager.functions.elementwise.unary import polygamma as polygamma
from weft.eager.functions.elementwise.unary import round as round
from weft.eager.functions.grad_scaler import GradScaler as GradScaler
from weft.eager.functions.indexing.gather import argwhere as argwhere
from weft.eager.functions.indexing.gather import flatnonzero as flatnonzero
from weft.eager.functions.indexing.gather import gather as gather
from weft.eager.functions.indexing.gather import index_select as index_select
from weft.eager.functions.indexing.gather import masked_scatter as masked_scatter
from weft.eager.functions.indexing.gather import masked_select as masked_select
from weft.eager.functions.indexing.gather import nonzero as nonzero
from weft.eager.functions.indexing.gather import nonzero_static as nonzero_static
from weft.eager.functions.indexing.gather import take as take
from weft.eager.functions.indexing.gather import take_along_axis as take_along_axis
from weft.eager.functions.indexing.gather import take_along_dim as take_along_dim
from weft.eager.functions.indexing.gather import where as where
from weft.eager.functions.indexing.scatter import index_add as index_add
from weft.eager.functions.indexing.scatter import index_copy as index_copy
from weft.eager.functions.indexing.scatter import index_fill as index_fill
from weft.eager.functions.indexing.scatter import scatter as scatter
from weft.eager.functions.indexing.scatter import scatter_add as scatter_add
from weft.eager.functions.indexing.scatter import scatter_reduce as scatter_reduce
from weft.eager.functions.indexing.slice_scatter import as_strided_scatter as as_strided_scatter
from weft.eager.functions.indexing.slice_scatter import diagonal_scatter as diagonal_scatter
from weft.eager.functions.indexing.slice_scatter import fill as fill
from weft.eager.functions.indexing.slice_scatter import index_put as index_put
from weft.eager.functions.indexing.slice_scatter import index_reduce as index_reduce
from weft.eager.functions.indexing.slice_scatter import put as put
from weft.eager.functions.indexing.slice_scatter import select_scatter as select_scatter
from weft.eager.functions.indexing.slice_scatter import slice_scatter as slice_scatter
from weft.eager.functions.linalg.factorization import cholesky as cholesky
from weft.eager.functions.linalg.factorization import geqrf as geqrf
from weft.eager.functions.linalg.factorization import lu as lu
from weft.eager.functions.linalg.factorization import lu_unpack as lu_unpack
from weft.eager.functions.linalg.factorization import orgqr as orgqr
from weft.eager.functions.linalg.factorization import ormqr as ormqr
from weft.eager.functions.linalg.factorization import qr as qr
from weft.eager.functions.linalg.factorization import svd as svd
from weft.eager.functions.linalg.low_rank import pca_lowrank as pca_lowrank
from weft.eager.functions.linalg.low_rank import svd_lowrank as svd_lowrank
from weft.eager.functions.linalg.product import addbmm as addbmm
from weft.eager.functions.linalg.product import addmm as addmm
from weft.eager.functions.linalg.product import addmv as addmv
from weft.eager.functions.linalg.product import addr as addr
from weft.eager.functions.linalg.product import baddbmm as baddbmm
from weft.eager.functions.linalg.product import bmm as bmm
from weft.eager.functions.linalg.product import cdist as cdist
from weft.eager.functions.linalg.product import chain_matmul as chain_matmul
from weft.eager.functions.linalg.product import cross as cross
from weft.eager.functions.linalg.product import dot as dot
from weft.eager.functions.linalg.product import einsum as einsum
from weft.eager.functions.linalg.product import ger as ger
from weft.eager.functions.linalg.product import inner as inner
from weft.eager.functions.linalg.product import kron as kron
from weft.eager.functions.linalg.product import matmul as matmul
from weft.eager.functions.linalg.product import mm as mm
from weft.eager.functions.linalg.product import mv as mv
from weft.eager.functions.linalg.product import outer as outer
from weft.eager.functions.linalg.product import tensordot as tensordot
from weft.eager.functions.linalg.product import trace as trace
from weft.eager.functions.linalg.product import vdot as vdot
from weft.eager.functions.linalg.solve import cholesky_inverse as cholesky_inverse
from weft.eager.functions.linalg.solve import cholesky_solve as cholesky_solve
from weft.eager.functions.linalg.solve import det as det
from weft.eager.functions.linalg.solve import inverse as inverse
from weft.eager.functions.linalg.solve import logdet as logdet
from weft.eager.functions.linalg.solve import lu_solve as lu_solve
from weft.eager.functions.linalg.solve import matrix_exp as matrix_exp
from weft.eager.functions.linalg.solve import matrix_power as matrix_power
from weft.eager.functions.linalg.solve import pinverse as pinverse
from weft.eager.functions.linalg.solve import slogdet as slogdet
from weft.eager.functions.linalg.solve import triangular_solve as triangular_solve
from weft.eager.functions.random.distribution import bernoulli as bernoulli
from weft.eager.functions.random.distribution import binomial as binomial
from weft.eager.functions.random.distribution import multinomial as multinomial
from weft.eager.functions.random.distribution import poisson as poisson
from weft.eager.functions.random.generator import Generator as Generator
from weft.eager.functions.random.generator import default_generator as default_generator
from weft.eager.functions.random.generator import fork_rng as fork_rng
from weft.eager.functions.random.generator import get_rng_state as get_rng_state
from weft.eager.functions.random.generator import initial_seed as initial_seed
from weft.eager.functions.random.generator import manual_seed as manual_seed
from weft.eager.functions.random.generator import normal as normal
from weft.eager.functions.random.generator import rand as rand
from weft.eager.functions.random.generator import rand_like as rand_like
from weft.eager.functions.random.generator import randint as randint
from weft.eager.functions.random.generator import randint_like as randint_like
from weft.eager.functions.random.generator import randn as randn
from weft.eager.functions.random.generator import randn_like as randn_like
from weft.eager.functions.random.generator import randperm as randperm
from weft.eager.functions.random.generator import seed as seed
from weft.eager.functions.random.generator import set_rng_state as set_rng_state
from weft.eager.functions.reduction.extremum import amax as amax
from weft.eager.functions.reduction.extremum import amin as amin
from weft.eager.functions.reduction.extremum import aminmax as aminmax
from weft.eager.functions.reduction.extremum import argmax as argmax
from weft.eager.functions.reduction.extremum import argmin as argmin
from weft.eager.functions.reduction.extremum import max as max
from weft.eager.functions.reduction.extremum import min as min
from weft.eager.functions.reduction.norm import dist as dist
from weft.eager.functions.reduction.norm import frobenius_norm as frobenius_norm
from weft.eager.functions.reduction.norm import norm as norm
from weft.eager.functions.reduction.norm import nuclear_norm as nuclear_norm
from weft.eager.functions.reduction.norm import renorm as renorm
from weft.eager.functions.reduction.numerical_gradient import gradient as gradient
from weft.eager.functions.reduction.reduce import all as all
from weft.eager.functions.reduction.reduce import any as any
from weft.eager.functions.reduction.reduce import count_nonzero as count_nonzero
from weft.eager.functions.reduction.reduce import log_softmax as log_softmax
from weft.eager.functions.reduction.reduce import logsumexp as logsumexp
from weft.eager.functions.reduction.reduce import mean as mean
from weft.eager.functions.reduction.reduce import nanmean as nanmean
from weft.eager.functions.reduction.reduce import nansum as nansum
from weft.eager.functions.reduction.reduce import prod as prod
from weft.eager.functions.reduction.reduce import softmax as softmax
from weft.eager.functions.reduction.reduce import std as std
from weft.eager.functions.reduction.reduce import std_mean as std_mean
from weft.eager.functions.reduction.reduce import sum as sum
from weft.eager.functions.reduction.reduce import var as var
from weft.eager.functions.reduction.reduce import var_mean as var_mean
from weft.eager.functions.reduction.statistic import cartesian_prod as cartesian_prod
from weft.eager.functions.reduction.statistic import combinations as combinations
from weft.eager.functions.reduction.statistic import corrcoef as corrcoef
from weft.eager.functions.reduction.statistic import cov as cov
from weft.eager.functions.reduction.statistic import cumulative_trapezoid as cumulative_trapezoid
from weft.eager.functions.reduction.statistic import diff as diff
from weft.eager.functions.reduction.statistic import histogram as histogram
from weft.eager.functions.reduction.statistic import histogramdd as histogramdd
from weft.eager.functions.reduction.statistic import mode as mode
from weft.eager.functions.reduction.statistic import nanmedian as nanmedian
from weft.eager.functions.reduction.statistic import nanquantile as nanquantile
from weft.eager.functions.reduction.statistic import trapezoid as trapezoid
from weft.eager.functions.reduction.statistic import trapz as trapz
from weft.eager.functions.setting import get_default_device as get_default_device
from weft.eager.functions.setting import get_float32_matmul_precision as get_float32_matmul_precision
from weft.eager.functions.setting import get_num_threads as get_num_threads
from weft.eager.functions.setting import set_default_device as set_default_device
from weft.eager.functions.setting import set_float32_matmul_precision as set_float32_matmul_precision
from weft.eager.functions.setting import set_flush_denormal as set_flush_denormal
from weft.eager.functions.setting import set_num_threads as set_num_threads
from weft.eager.functions.shape.diagonal import diag as diag
from weft.eager.functions.shape.diagonal import diag_embed as diag_embed
from weft.eager.functions.shape.diagonal import diagflat as diagflat
from weft.eager.functions.shape.diagonal import tril as tril
from weft.eager.functions.shape.diagonal import triu as triu
from weft.eager.functions.shape.diagonal import vander as vander
from weft.eager.functions.shape.joining import atleast_1d as atleast_1d
from weft.eager.functions.shape.joining import atleast_2d as atleast_2d
from weft.eager.functions.shape.joining import atleast_3d as atleast_3d
from weft.eager.functions.shape.joining import block_diag as block_diag
from weft.eager.functions.shape.joining import cat as cat
from weft.eager.functions.shape.joining import column_stack as column_stack
from weft.eager.functions.shape.joining import concat as concat
from weft.eager.functions.shape.joining import concatenate as concatenate
from weft.eager.functions.shape.joining import dstack as dstack
from weft.eager.functions.shape.joining import hstack as hstack
from weft.eager.functions.shape.joining import row_stack as row_stack
from weft.eager.functions.shape.joining import stack as stack
from weft.eager.functions.shape.joining import vstack as vstack
from weft.eager.functions.shape.movement import broadcast_shapes as broadcast_shapes
from weft.eager.functions.shape.movement import broadcast_tensors as broadcast_tensors
from weft.eager.functions.shape.movement import flip as flip
from weft.eager.functions.shape.movement import fliplr as fliplr
from weft.eager.functions.shape.movement import flipud as flipud
from weft.eager.functions.shape.movement import repeat_interleave as repeat_interleave
from weft.eager.functions.shape.movement import roll as roll
from weft.eager.functions.shape.movement import rot90 as rot90
from weft.eager.functions.shape.movement import tile as tile
from weft.eager.functions.shape.permutation import diagonal as diagonal
from weft.eager.functions.shape.permutation import moveaxis as moveaxis
from weft.eager.functions.shape.permutation import movedim as movedim
from weft.eager.functions.shape.permutation import permute as permute
from weft.eager.functions.shape.permutation import permute_dims as permute_dims
from weft.eager.functions.shape.permutation import swapaxes as swapaxes
from weft.eager.functions.shape.permutation import swapdims as swapdims
from weft.eager.functions.shape.permutation import t as t
from weft.eager.functions.shape.permutation import transpose as transpose
from weft.eager.functions.shape.reshape import broadcast_to as broadcast_to
from weft.eager.functions.shape.reshape import detach as detach
from weft.eager.functions.shape.reshape import expand as expand
from weft.eager.functions.shape.reshape import expand_dims as expand_dims
from weft.eager.functions.shape.reshape import flatten as flatten
from weft.eager.functions.shape.reshape import ravel as ravel
from weft.eager.functions.shape.reshape import reshape as reshape
from weft.eager.functions.shape.reshape import squeeze as squeeze
from weft.eager.functions.shape.reshape import unflatten as unflatten
from weft.eager.functions.shape.reshape import unsqueeze as unsqueeze
from weft.eager.functions.shape.splitting import chunk as chunk
from weft.eager.functions.shape.splitting import dsplit as dsplit
from weft.eager.functions.shape.splitting import hsplit as hsplit
from weft.eager.functions.shape.splitting import narrow as narrow
from weft.eager.functions.shape.splitting import select as select
from weft.eager.functions.shape.splitting import split as split
from weft.eager.functions.shape.splitting import split_with_sizes as split_with_sizes
from weft.eager.functions.shape.splitting import tensor_split as tensor_split
from weft.eager.functions.shape.splitting import unbind as unbind
from weft.eager.functions.shape.splitting import unstack as unstack
from weft.eager.functions.shape.splitting import vsplit as vsplit
from weft.eager.functions.shape.stride import as_strided as as_strided
from weft.eager.functions.shape.view_copy import as_strided_copy as as_strided_copy
from weft.eager.functions.shape.view_copy import detach_copy as detach_copy
from weft.eager.functions.shape.view_copy import diagonal_copy as diagonal_copy
from weft.eager.functions.shape.view_copy import expand_copy as expand_copy
from weft.eager.functions.shape.view_copy import narrow_copy as narrow_copy
from weft.eager.functions.shape.view_copy import permute_copy as permute_copy
from weft.eager.functions.shape.view_copy import select_copy as select_copy
from weft.eager.functions.shape.view_copy import split_copy as split_copy
from weft.eager.functions.shape.view_copy import squeeze_copy as squeeze_copy
from weft.eager.functions.shape.view_copy import t_copy as t_copy
from weft.eager.functions.shape.view_copy import transpose_copy as transpose_copy
from weft.eager.functions.shape.view_copy import unbind_copy as unbind_copy
from weft.eager.functions.shape.view_copy import unfold_copy as unfold_copy
from weft.eager.functions.shape.view_copy import unsqueeze_copy as unsqueeze_copy
from weft.eager.functions.shape.view_copy import view_copy as view_copy
from weft.eager.functions.sort.counting import bincount as bincount
from weft.eager.functions.sort.counting import bucketize as bucketize
from weft.eager.functions.sort.counting import histc as histc
from weft.eager.functions.sort.counting import isin as isin
from weft.eager.functions.sort.counting import searchsorted as searchsorted
from weft.eager.functions.sort.counting import unique as unique
from weft.eager.functions.sort.counting import unique_consecutive as unique_consecutive
from weft.eager.functions.sort.order import argsort as argsort
from weft.eager.functions.sort.order import cummax as cummax
from weft.eager.functions.sort.order import cummin as cummin
from weft.eager.functions.sort.order import kthvalue as kthvalue
from weft.eager.functions.sort.order import logcumsumexp as logcumsumexp
from weft.eager.functions.sort.order import median as median
from weft.eager.functions.sort.order import msort as msort
from weft.eager.functions.sort.order import quantile as quantile
from weft.eager.functions.sort.order import sort as sort
from weft.eager.functions.sort.order import topk as topk
from weft.eager.functions.sparse.construct import sparse_coo_tensor as sparse_coo_tensor
from weft.eager.functions.sparse.construct import sparse_csr_tensor as sparse_csr_tensor
from weft.eager.record.memory.memory_pool import empty_cache as empty_cache
from weft.eager.record.pending.determinism import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from weft.eager.record.pending.determinism import use_deterministic_algorithms as use_deterministic_algorithms
from weft.eager.record.pending.mode import autocast as autocast
from weft.eager.record.pending.mode import enable_grad as enable_grad
from weft.eager.record.pending.mode import get_autocast_dtype as get_autocast_dtype
from weft.eager.record.pending.mode import inference_mode as inference_mode
from weft.eager.record.pending.mode import is_autocast_enabled as is_autocast_enabled
from weft.eager.record.pending.mode import is_grad_enabled as is_grad_enabled
from weft.eager.record.pending.mode import is_inference_mode_enabled as is_inference_mode_enabled
from weft.eager.record.pending.mode import no_grad as no_grad
from weft.eager.record.pending.mode import set_grad_enabled as set_grad_enabled
from weft.eager.record.run.async_execution import synchronize as synchronize
from weft.eager.record.run.interruption import drop_interrupted as drop_interrupted
from weft.eager.tensor.attribute import clone as clone
from weft.eager.tensor.attribute import is_complex as is_complex
from weft.eager.tensor.attribute import is_floating_point as is_floating_point
from weft.eager.tensor.attribute import is_inference as is_inference
from weft.eager.tensor.attribute import is_nonzero as is_nonzero
from weft.eager.tensor.attribute import is_signed as is_signed
from weft.eager.tensor.attribute import is_tensor as is_tensor
from weft.eager.tensor.attribute import numel as numel
from weft.eager.tensor.autograd.anomaly import find_nan as find_nan
from weft.eager.tensor.device import device as device
from weft.eager.tensor.device import get_cpu_devices as get_cpu_devices
from weft.eager.tensor.device import set_cpu_devices as set_cpu_devices
from weft.eager.tensor.dtype.dtype_info import can_cast as can_cast
from weft.eager.tensor.dtype.dtype_info import finfo as finfo
from weft.eager.tensor.dtype.dtype_info import iinfo as iinfo
from weft.eager.tensor.dtype.dtype_info import promote_types as promote_types
from weft.eager.tensor.dtype.dtype_info import result_type as result_type
from weft.eager.tensor.dtype.promotion import get_default_dtype as get_default_dtype
from weft.eager.tensor.dtype.promotion import set_default_dtype as set_default_dtype
from weft.eager.tensor.interchange.interchange import from_dlpack as from_dlpack
from weft.eager.tensor.interchange.printing import get_printoptions as get_printoptions
from weft.eager.tensor.interchange.printing import printoptions as printoptions
from weft.eager.tensor.interchange.printing import set_printoptions as set_printoptions
from weft.eager.tensor.size import Size as Size
from weft.eager.tensor.tensor import Tensor as Tensor
from weft.eager.tensor.view.memory_format import channels_last as channels_last
from weft.eager.tensor.view.memory_format import channels_last_3d as channels_last_3d
from weft.eager.tensor.view.memory_format import contiguous_format as contiguous_format
from weft.eager.tensor.view.memory_format import layout as layout
from weft.eager.tensor.view.memory_format import memory_format as memory_format
from weft.eager.tensor.view.memory_format import preserve_format as preserve_format
from weft.eager.tensor.view.memory_format import sparse_coo as sparse_coo
from weft.eager.tensor.view.memory_format import sparse_csr as sparse_csr
from weft.eager.tensor.view.memory_format import strided as strided

OUT: dict[str, Any]
__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "Generator",
    "GradScaler",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "Size",
    "Tensor",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "adjoint",
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "angle",
    "any",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "are_deterministic_algorithms_enabled",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "as_strided",
    "as_strided_copy",
    "as_strided_scatter",
    "as_tensor",
    "asarray",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "autocast",
    "baddbmm",
    "bartlett_window",
    "bernoulli",
    "bincount",
    "binomial",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman_window",
    "block_diag",
    "bmm",
    "bool",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "can_cast",
    "cartesian_prod",
    "cat",
    "cbrt",
    "cdist",
    "cdouble",
    "ceil",
    "celu",
    "cfloat",
    "chain_matmul",
    "channels_last",
    "channels_last_3d",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "column_stack",
    "combinations",
    "compile",
    "complex",
    "concat",
    "concatenate",
    "conj",
    "conj_physical",
    "contiguous_format",
    "copysign",
    "corrcoef",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "default_generator",
    "deg2rad",
    "det",
    "detach",
    "detach_copy",
    "device",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_copy",
    "diagonal_scatter",
    "diff",
    "digamma",
    "dist",
    "div",
    "divide",
    "dot",
    "double",
    "drop_interrupted",
    "dsplit",
    "dstack",
    "e",
    "einsum",
    "elu",
    "empty",
    "empty_cache",
    "empty_like",
    "enable_grad",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expand",
    "expand_copy",
    "expand_dims",
    "expit",
    "expm1",
    "eye",
    "fill",
    "find_nan",
    "finfo",
    "fix",
    "flatnonzero",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "fork_rng",
    "frac",
    "frexp",
    "frobenius_norm",
    "from_dlpack",
    "from_file",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "gather",
    "gcd",
    "ge",
    "gelu",
    "geqrf",
    "ger",
    "get_autocast_dtype",
    "get_cpu_devices",
    "get_default_device",
    "get_default_dtype",
    "get_float32_matmul_precision",
    "get_num_threads",
    "get_printoptions",
    "get_rng_state",
    "gradient",
    "greater",
    "greater_equal",
    "gt",
    "half",
    "hamming_window",
    "hann_window",
    "hardshrink",
    "heaviside",
    "histc",
    "histogram",
    "histogramdd",
    "hsplit",
    "hstack",
    "hypot",
    "i0",
    "iinfo",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_reduce",
    "index_select",
    "inf",
    "inference_mode",
    "initial_seed",
    "inner",
    "int",
    "inverse",
    "invert",
    "is_autocast_enabled",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_neg",
    "is_nonzero",
    "is_signed",
    "is_tensor",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "kaiser_window",
    "kron",
    "kthvalue",
    "layout",
    "lcm",
    "ldexp",
    "le",
    "leaky_relu",
    "left_shift",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logspace",
    "logsumexp",
    "long",
    "lt",
    "lu",
    "lu_solve",
    "lu_unpack",
    "manual_seed",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "matrix_exp",
    "matrix_power",
    "max",
    "maximum",
    "mean",
    "median",
    "memory_format",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "mode",
    "moveaxis",
    "movedim",
    "msort",
    "mul",
    "multinomial",
    "multiply",
    "mv",
    "nan",
    "nan_to_num",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "narrow",
    "narrow_copy",
    "ne",
    "neg",
    "negative",
    "newaxis",
    "nextafter",
    "no_grad",
    "nonzero",
    "nonzero_static",
    "norm",
    "normal",
    "not_equal",
    "nuclear_norm",
    "numel",
    "ones",
    "ones_like",
    "orgqr",
    "ormqr",
    "outer",
    "pca_lowrank",
    "permute",
    "permute_copy",
    "permute_dims",
    "pi",
    "pinverse",
    "poisson",
    "polar",
    "polygamma",
    "positive",
    "pow",
    "power",
    "preserve_format",
    "printoptions",
    "prod",
    "promote_types",
    "put",
    "qr",
    "quantile",
    "rad2deg",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "ravel",
    "real",
    "reciprocal",
    "relu",
    "relu6",
    "remainder",
    "renorm",
    "repeat_interleave",
    "reshape",
    "resolve_conj",
    "resolve_neg",
    "result_type",
    "right_shift",
    "roll",
    "rot90",
    "round",
    "row_stack",
    "rsqrt",
    "rsub",
    "scalar_tensor",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "seed",
    "select",
    "select_copy",
    "select_scatter",
    "selu",
    "set_cpu_devices",
    "set_default_device",
    "set_default_dtype",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "sgn",
    "short",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "slice_scatter",
    "slogdet",
    "softmax",
    "softplus",
    "sort",
    "sparse_coo",
    "sparse_coo_tensor",
    "sparse_csr",
    "sparse_csr_tensor",
    "split",
    "split_copy",
    "split_with_sizes",
    "sqrt",
    "square",
    "squeeze",
    "squeeze_copy",
    "stack",
    "std",
    "std_mean",
    "strided",
    "sub",
    "subtract",
    "sum",
    "svd",
    "svd_lowrank",
    "swapaxes",
    "swapdims",
    "synchronize",
    "t",
    "t_copy",
    "take",
    "take_along_axis",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor",
    "tensor_split",
    "tensordot",
    "tile",
    "topk",
    "trace",
    "transpose",
    "transpose_copy",
    "trapezoid",
    "trapz",
    "triangular_solve",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "unbind",
    "unbind_copy",
    "unflatten",
    "unfold_copy",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "unsqueeze",
    "unsqueeze_copy",
    "unstack",
    "use_deterministic_algorithms",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "view_as_complex",
    "view_as_real",
    "view_copy",
    "vsplit",
    "vstack",
    "where",
    "xlogy",
    "zeros",
    "zeros_like",
]
