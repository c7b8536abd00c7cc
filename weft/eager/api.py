"""What `import weft as wf` offers of the define-by-run front end: every public name, once."""

from __future__ import annotations

from weft.eager import (
    activation,
    alias,
    arithmetic,
    copied,
    counting,
    elementary,
    factoring,
    imaginary,
    joining,
    linear,
    lowrank,
    movement,
    norming,
    number,
    placing,
    reduction,
    replacing,
    selection,
    shaping,
    sharing,
    slope,
    solving,
    sorting,
    statistic,
    striding,
    typed,
    window,
)
from weft.eager.activation import *  # noqa: F403
from weft.eager.ahead import synchronize
from weft.eager.alias import *  # noqa: F403
from weft.eager.anomaly import find_nan
from weft.eager.arithmetic import *  # noqa: F403
from weft.eager.attribute import (
    clone,
    is_complex,
    is_floating_point,
    is_inference,
    is_nonzero,
    is_signed,
    is_tensor,
    numel,
)
from weft.eager.compilation import compile
from weft.eager.copied import *  # noqa: F403
from weft.eager.counting import *  # noqa: F403
from weft.eager.creation import (
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
from weft.eager.determinism import (
    are_deterministic_algorithms_enabled,
    use_deterministic_algorithms,
)
from weft.eager.device import device
from weft.eager.drawing import bernoulli, binomial, multinomial, poisson
from weft.eager.elementary import *  # noqa: F403
from weft.eager.factoring import *  # noqa: F403
from weft.eager.format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from weft.eager.imaginary import *  # noqa: F403
from weft.eager.interchange import from_dlpack
from weft.eager.joining import *  # noqa: F403
from weft.eager.limits import can_cast, finfo, iinfo, promote_types, result_type
from weft.eager.linear import *  # noqa: F403
from weft.eager.lowrank import *  # noqa: F403
from weft.eager.mode import (
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
from weft.eager.movement import *  # noqa: F403
from weft.eager.norming import *  # noqa: F403
from weft.eager.number import *  # noqa: F403
from weft.eager.placing import *  # noqa: F403
from weft.eager.printing import get_printoptions, printoptions, set_printoptions
from weft.eager.promotion import default_dtype as get_default_dtype
from weft.eager.promotion import set_default_dtype
from weft.eager.random import (
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
from weft.eager.reduction import *  # noqa: F403
from weft.eager.replacing import *  # noqa: F403
from weft.eager.scaler import GradScaler
from weft.eager.selection import *  # noqa: F403
from weft.eager.sequence import (
    arange,
    eye,
    linspace,
    logspace,
    meshgrid,
    range,
    tril_indices,
    triu_indices,
)
from weft.eager.serialisation import load, save
from weft.eager.shaping import *  # noqa: F403
from weft.eager.sharing import *  # noqa: F403
from weft.eager.size import Size
from weft.eager.slope import *  # noqa: F403
from weft.eager.solving import *  # noqa: F403
from weft.eager.sorting import *  # noqa: F403
from weft.eager.statistic import *  # noqa: F403
from weft.eager.storage import empty_cache
from weft.eager.striding import *  # noqa: F403
from weft.eager.tensor import Tensor
from weft.eager.typed import *  # noqa: F403
from weft.eager.window import *  # noqa: F403

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
