"""What `import weft as wf` offers of the define-by-run front end: every public name, once."""

from __future__ import annotations

from weft.eager.functions import dtype_alias as alias
from weft.eager.functions.compilation import compile
from weft.eager.functions.creation import shared_memory as sharing
from weft.eager.functions.creation import typed_tensor as typed
from weft.eager.functions.creation import window
from weft.eager.functions.creation.arange import (
    arange,
    eye,
    linspace,
    logspace,
    meshgrid,
    range,
    tril_indices,
    triu_indices,
)
from weft.eager.functions.creation.constructor import (
    as_tensor,
    empty,
    empty_like,
    from_numpy,
    full,
    full_like,
    ones,
    ones_like,
    scalar_tensor,
    tensor,
    zeros,
    zeros_like,
)
from weft.eager.functions.creation.shared_memory import *  # noqa: F403
from weft.eager.functions.creation.typed_tensor import *  # noqa: F403
from weft.eager.functions.creation.window import *  # noqa: F403
from weft.eager.functions.dtype_alias import *  # noqa: F403
from weft.eager.functions.elementwise import activation, selection
from weft.eager.functions.elementwise import binary as arithmetic
from weft.eager.functions.elementwise import complex_number as imaginary
from weft.eager.functions.elementwise import integer as number
from weft.eager.functions.elementwise import unary as elementary
from weft.eager.functions.elementwise.activation import *  # noqa: F403
from weft.eager.functions.elementwise.binary import *  # noqa: F403
from weft.eager.functions.elementwise.complex_number import *  # noqa: F403
from weft.eager.functions.elementwise.integer import *  # noqa: F403
from weft.eager.functions.elementwise.selection import *  # noqa: F403
from weft.eager.functions.elementwise.unary import *  # noqa: F403
from weft.eager.functions.grad_scaler import GradScaler
from weft.eager.functions.indexing import gather as placing
from weft.eager.functions.indexing import slice_scatter as replacing
from weft.eager.functions.indexing.gather import *  # noqa: F403
from weft.eager.functions.indexing.slice_scatter import *  # noqa: F403
from weft.eager.functions.linalg import factorization as factoring
from weft.eager.functions.linalg import low_rank as lowrank
from weft.eager.functions.linalg import product as linear
from weft.eager.functions.linalg import solve as solving
from weft.eager.functions.linalg.factorization import *  # noqa: F403
from weft.eager.functions.linalg.low_rank import *  # noqa: F403
from weft.eager.functions.linalg.product import *  # noqa: F403
from weft.eager.functions.linalg.solve import *  # noqa: F403
from weft.eager.functions.random.distribution import bernoulli, binomial, multinomial, poisson
from weft.eager.functions.random.generator import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)
from weft.eager.functions.reduction import norm as norming
from weft.eager.functions.reduction import numerical_gradient as slope
from weft.eager.functions.reduction import reduce as reduction
from weft.eager.functions.reduction import statistic
from weft.eager.functions.reduction.norm import *  # noqa: F403
from weft.eager.functions.reduction.numerical_gradient import *  # noqa: F403
from weft.eager.functions.reduction.reduce import *  # noqa: F403
from weft.eager.functions.reduction.statistic import *  # noqa: F403
from weft.eager.functions.shape import joining, movement
from weft.eager.functions.shape import reshape as shaping
from weft.eager.functions.shape import stride as striding
from weft.eager.functions.shape import view_copy as copied
from weft.eager.functions.shape.joining import *  # noqa: F403
from weft.eager.functions.shape.movement import *  # noqa: F403
from weft.eager.functions.shape.reshape import *  # noqa: F403
from weft.eager.functions.shape.stride import *  # noqa: F403
from weft.eager.functions.shape.view_copy import *  # noqa: F403
from weft.eager.functions.sort import counting
from weft.eager.functions.sort import order as sorting
from weft.eager.functions.sort.counting import *  # noqa: F403
from weft.eager.functions.sort.order import *  # noqa: F403
from weft.eager.record.async_execution import synchronize
from weft.eager.record.determinism import (
    are_deterministic_algorithms_enabled,
    use_deterministic_algorithms,
)
from weft.eager.record.memory_pool import empty_cache
from weft.eager.record.mode import (
    autocast,
    enable_grad,
    get_autocast_dtype,
    inference_mode,
    is_autocast_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from weft.eager.tensor.anomaly import find_nan
from weft.eager.tensor.attribute import (
    clone,
    is_complex,
    is_floating_point,
    is_inference,
    is_nonzero,
    is_signed,
    is_tensor,
    numel,
)
from weft.eager.tensor.device import device
from weft.eager.tensor.dtype_info import can_cast, finfo, iinfo, promote_types, result_type
from weft.eager.tensor.interchange import from_dlpack
from weft.eager.tensor.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from weft.eager.tensor.printing import get_printoptions, printoptions, set_printoptions
from weft.eager.tensor.promotion import default_dtype as get_default_dtype
from weft.eager.tensor.promotion import set_default_dtype
from weft.eager.tensor.serialization import load, save
from weft.eager.tensor.size import Size
from weft.eager.tensor.tensor import Tensor

__all__ = [
    "Generator",
    "GradScaler",
    "Size",
    "Tensor",
    "arange",
    "are_deterministic_algorithms_enabled",
    "as_tensor",
    "autocast",
    "bernoulli",
    "binomial",
    "can_cast",
    "channels_last",
    "channels_last_3d",
    "clone",
    "compile",
    "contiguous_format",
    "default_generator",
    "device",
    "empty",
    "empty_cache",
    "empty_like",
    "enable_grad",
    "eye",
    "find_nan",
    "finfo",
    "fork_rng",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "get_autocast_dtype",
    "get_default_dtype",
    "get_printoptions",
    "get_rng_state",
    "iinfo",
    "inference_mode",
    "initial_seed",
    "is_autocast_enabled",
    "is_complex",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_nonzero",
    "is_signed",
    "is_tensor",
    "layout",
    "linspace",
    "load",
    "logspace",
    "manual_seed",
    "memory_format",
    "meshgrid",
    "multinomial",
    "no_grad",
    "normal",
    "numel",
    "ones",
    "ones_like",
    "poisson",
    "preserve_format",
    "printoptions",
    "promote_types",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "result_type",
    "save",
    "scalar_tensor",
    "seed",
    "set_default_dtype",
    "set_grad_enabled",
    "set_printoptions",
    "set_rng_state",
    "strided",
    "synchronize",
    "tensor",
    "tril_indices",
    "triu_indices",
    "use_deterministic_algorithms",
    "zeros",
    "zeros_like",
]
# Families of operations say themselves what they offer.
__all__ += activation.__all__
__all__ += alias.__all__
__all__ += arithmetic.__all__
__all__ += copied.__all__
__all__ += counting.__all__
__all__ += elementary.__all__
__all__ += factoring.__all__
__all__ += joining.__all__
__all__ += linear.__all__
__all__ += lowrank.__all__
__all__ += movement.__all__
__all__ += norming.__all__
__all__ += reduction.__all__
__all__ += placing.__all__
__all__ += selection.__all__
__all__ += solving.__all__
__all__ += replacing.__all__
__all__ += sorting.__all__
__all__ += statistic.__all__
__all__ += shaping.__all__
__all__ += sharing.__all__
__all__ += imaginary.__all__
__all__ += number.__all__
__all__ += slope.__all__
__all__ += striding.__all__
__all__ += typed.__all__
__all__ += window.__all__
