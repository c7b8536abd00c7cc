"""JAX's names: the same engine, arrays that never change, keys, and transformations.

>>> import weft.jax as jax, weft.jax.numpy as jnp
>>> jax.grad(lambda w: jnp.sum(w**2))(jnp.array([1.0, 2.0]))
Array([2., 4.], dtype=float32)
"""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.config import config as config
from weft.jax.config import disable_jit as disable_jit
from weft.jax.config import enable_x64 as enable_x64

_exports.gather(globals(), "config", "disable_jit", "enable_x64")
_exports.lazy(
    globals(),
    {
        "weft.jax": (
            "ad_checkpoint", "core", "custom_derivatives", "debug", "dtypes", "errors",
            "example_libraries", "experimental", "flatten_util", "image", "lax", "nn", "numpy",
            "ops", "profiler", "random", "scipy", "sharding",
            "tree", "tree_util", "typing",
        ),
        "weft.jax.array": ("Array",),
        "weft.jax.device": (
            "ShapeDtypeStruct", "block_until_ready", "clear_caches", "copy_to_host_async",
            "debug_infs", "debug_nans", "default_backend", "default_device",
            "default_matmul_precision", "default_prng_impl", "device_count", "device_get",
            "device_put", "devices", "effects_barrier", "ensure_compile_time_eval", "eval_shape",
            "host_count", "host_id", "host_ids", "local_device_count", "local_devices",
            "make_jaxpr", "make_mesh", "named_scope", "numpy_dtype_promotion",
            "numpy_rank_promotion", "print_environment_info", "process_count", "process_index",
            "process_indices", "pure_callback", "checking_leaks", "log_compiles", "closure_convert",
            "transfer_guard", "typeof", "live_arrays",
        ),
        "weft.jax.transform": (
            "checkpoint", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jit", "jvp",
            "linear_transpose", "linearize", "named_call", "pmap", "remat", "shard_map",
            "value_and_grad", "vjp", "vmap",
        ),
        "weft.jax.gradient_rule": ("custom_gradient", "custom_vjp"),
        "weft.jax.tangent_rule": ("custom_jvp",),
        "weft.jax.tree_util": ("tree_leaves", "tree_map", "tree_structure"),
        "weft.jax.ad_checkpoint": ("checkpoint_policies",),
        "weft.jax.dtypes": ("float0",),
        "weft.jax.sharding": ("NamedSharding", "P"),
    },
)  # fmt: skip
