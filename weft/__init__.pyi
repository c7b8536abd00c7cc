"""Made by `python -m tools.package_stubs`."""

from weft.eager.functions.api import *
abs_ = Tensor.abs_
absolute_ = Tensor.absolute_
acos_ = Tensor.acos_
acosh_ = Tensor.acosh_
add_ = Tensor.add_
addbmm_ = Tensor.addbmm_
addcdiv_ = Tensor.addcdiv_
addcmul_ = Tensor.addcmul_
addmm_ = Tensor.addmm_
addmv_ = Tensor.addmv_
addr_ = Tensor.addr_
apply_ = Tensor.apply_
arccos_ = Tensor.arccos_
arccosh_ = Tensor.arccosh_
arcsin_ = Tensor.arcsin_
arcsinh_ = Tensor.arcsinh_
arctan2_ = Tensor.arctan2_
arctan_ = Tensor.arctan_
arctanh_ = Tensor.arctanh_
as_strided_ = Tensor.as_strided_
asin_ = Tensor.asin_
asinh_ = Tensor.asinh_
atan2_ = Tensor.atan2_
atan_ = Tensor.atan_
atanh_ = Tensor.atanh_
baddbmm_ = Tensor.baddbmm_
bernoulli_ = Tensor.bernoulli_
bitwise_and_ = Tensor.bitwise_and_
bitwise_left_shift_ = Tensor.bitwise_left_shift_
bitwise_not_ = Tensor.bitwise_not_
bitwise_or_ = Tensor.bitwise_or_
bitwise_right_shift_ = Tensor.bitwise_right_shift_
bitwise_xor_ = Tensor.bitwise_xor_
cauchy_ = Tensor.cauchy_
ceil_ = Tensor.ceil_
clamp_ = Tensor.clamp_
clamp_max_ = Tensor.clamp_max_
clamp_min_ = Tensor.clamp_min_
clip_ = Tensor.clip_
copy_ = Tensor.copy_
copysign_ = Tensor.copysign_
cos_ = Tensor.cos_
cosh_ = Tensor.cosh_
cumprod_ = Tensor.cumprod_
cumsum_ = Tensor.cumsum_
deg2rad_ = Tensor.deg2rad_
detach_ = Tensor.detach_
digamma_ = Tensor.digamma_
div_ = Tensor.div_
divide_ = Tensor.divide_
eq_ = Tensor.eq_
erf_ = Tensor.erf_
erfc_ = Tensor.erfc_
erfinv_ = Tensor.erfinv_
exp2_ = Tensor.exp2_
exp_ = Tensor.exp_
expm1_ = Tensor.expm1_
exponential_ = Tensor.exponential_
fill_ = Tensor.fill_
fill_diagonal_ = Tensor.fill_diagonal_
fix_ = Tensor.fix_
float_power_ = Tensor.float_power_
floor_ = Tensor.floor_
floor_divide_ = Tensor.floor_divide_
fmax_ = Tensor.fmax_
fmin_ = Tensor.fmin_
fmod_ = Tensor.fmod_
frac_ = Tensor.frac_
gcd_ = Tensor.gcd_
ge_ = Tensor.ge_
geometric_ = Tensor.geometric_
greater_ = Tensor.greater_
greater_equal_ = Tensor.greater_equal_
gt_ = Tensor.gt_
heaviside_ = Tensor.heaviside_
hypot_ = Tensor.hypot_
i0_ = Tensor.i0_
index_add_ = Tensor.index_add_
index_copy_ = Tensor.index_copy_
index_fill_ = Tensor.index_fill_
index_put_ = Tensor.index_put_
index_reduce_ = Tensor.index_reduce_
lcm_ = Tensor.lcm_
ldexp_ = Tensor.ldexp_
le_ = Tensor.le_
lerp_ = Tensor.lerp_
less_ = Tensor.less_
less_equal_ = Tensor.less_equal_
lgamma_ = Tensor.lgamma_
log10_ = Tensor.log10_
log1p_ = Tensor.log1p_
log2_ = Tensor.log2_
log_ = Tensor.log_
log_normal_ = Tensor.log_normal_
logical_and_ = Tensor.logical_and_
logical_not_ = Tensor.logical_not_
logical_or_ = Tensor.logical_or_
logical_xor_ = Tensor.logical_xor_
logit_ = Tensor.logit_
lt_ = Tensor.lt_
map2_ = Tensor.map2_
map_ = Tensor.map_
masked_fill_ = Tensor.masked_fill_
masked_scatter_ = Tensor.masked_scatter_
mul_ = Tensor.mul_
multiply_ = Tensor.multiply_
nan_to_num_ = Tensor.nan_to_num_
ne_ = Tensor.ne_
neg_ = Tensor.neg_
negative_ = Tensor.negative_
nextafter_ = Tensor.nextafter_
normal_ = Tensor.normal_
not_equal_ = Tensor.not_equal_
pow_ = Tensor.pow_
put_ = Tensor.put_
rad2deg_ = Tensor.rad2deg_
random_ = Tensor.random_
reciprocal_ = Tensor.reciprocal_
relu_ = Tensor.relu_
remainder_ = Tensor.remainder_
renorm_ = Tensor.renorm_
requires_grad_ = Tensor.requires_grad_
resize_ = Tensor.resize_
resize_as_ = Tensor.resize_as_
round_ = Tensor.round_
rsqrt_ = Tensor.rsqrt_
scatter_ = Tensor.scatter_
scatter_add_ = Tensor.scatter_add_
scatter_reduce_ = Tensor.scatter_reduce_
sgn_ = Tensor.sgn_
share_memory_ = Tensor.share_memory_
sigmoid_ = Tensor.sigmoid_
sign_ = Tensor.sign_
sin_ = Tensor.sin_
sinc_ = Tensor.sinc_
sinh_ = Tensor.sinh_
sqrt_ = Tensor.sqrt_
square_ = Tensor.square_
squeeze_ = Tensor.squeeze_
sub_ = Tensor.sub_
subtract_ = Tensor.subtract_
swapaxes_ = Tensor.swapaxes_
swapdims_ = Tensor.swapdims_
t_ = Tensor.t_
tan_ = Tensor.tan_
tanh_ = Tensor.tanh_
transpose_ = Tensor.transpose_
tril_ = Tensor.tril_
triu_ = Tensor.triu_
true_divide_ = Tensor.true_divide_
trunc_ = Tensor.trunc_
uniform_ = Tensor.uniform_
unsqueeze_ = Tensor.unsqueeze_
xlogy_ = Tensor.xlogy_
zero_ = Tensor.zero_
from weft import config as config
from weft import errors as errors
from weft.ir.dtype import *
from weft.version import __version__ as __version__
from weft import accelerator as accelerator
from weft import amp as amp
from weft import autograd as autograd
from weft import backends as backends
from weft import checkpoint as checkpoint
from weft import cluster as cluster
from weft import cuda as cuda
from weft import data as data
from weft import datasets as datasets
from weft import distributed as distributed
from weft import distributions as distributions
from weft import fft as fft
from weft import func as func
from weft import horovod as horovod
from weft import linalg as linalg
from weft import metrics as metrics
from weft import models as models
from weft import multiprocessing as multiprocessing
from weft import nn as nn
from weft import numpy as numpy
from weft import ops as ops
from weft import optim as optim
from weft import scipy as scipy
from weft import signal as signal
from weft import sparse as sparse
from weft import special as special
from weft import table as table
from weft import tf1 as tf1
from weft import torchmetrics as torchmetrics
from weft import train as train
from weft import utils as utils
from weft.fft import istft as istft
from weft.fft import stft as stft
from weft.func import associative_scan as associative_scan
from weft.func import cond as cond
from weft.func import fori_loop as fori_loop
from weft.func import map as map
from weft.func import scan as scan
from weft.func import switch as switch
from weft.func import vmap as vmap
from weft.func import while_loop as while_loop
from weft.func.explanation import explain as explain
from weft.nn.functional import adaptive_avg_pool1d as adaptive_avg_pool1d
from weft.nn.functional import alpha_dropout as alpha_dropout
from weft.nn.functional import avg_pool1d as avg_pool1d
from weft.nn.functional import bilinear as bilinear
from weft.nn.functional import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from weft.nn.functional import channel_shuffle as channel_shuffle
from weft.nn.functional import conv1d as conv1d
from weft.nn.functional import conv2d as conv2d
from weft.nn.functional import conv3d as conv3d
from weft.nn.functional import conv_transpose1d as conv_transpose1d
from weft.nn.functional import conv_transpose2d as conv_transpose2d
from weft.nn.functional import conv_transpose3d as conv_transpose3d
from weft.nn.functional import cosine_similarity as cosine_similarity
from weft.nn.functional import dropout as dropout
from weft.nn.functional import feature_alpha_dropout as feature_alpha_dropout
from weft.nn.functional import group_norm as group_norm
from weft.nn.functional import layer_norm as layer_norm
from weft.nn.functional import max_pool1d as max_pool1d
from weft.nn.functional import max_pool2d as max_pool2d
from weft.nn.functional import max_pool3d as max_pool3d
from weft.nn.functional import pairwise_distance as pairwise_distance
from weft.nn.functional import pdist as pdist
from weft.nn.functional import pixel_shuffle as pixel_shuffle
from weft.nn.functional import pixel_unshuffle as pixel_unshuffle
from weft.nn.functional import prelu as prelu
from weft.nn.functional import rms_norm as rms_norm
from weft.nn.functional import threshold as threshold
from weft.nn.functional import triplet_margin_loss as triplet_margin_loss
from weft.serialization import load as load
from weft.serialization import save as save
from weft.special import igamma as igamma
from weft.special import igammac as igammac
from weft.special import mvlgamma as mvlgamma
