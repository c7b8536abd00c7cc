"""`jax.custom_derivatives`: functions with derivatives of one's own."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.device import closure_convert as closure_convert
from weft.jax.gradient_rule import CustomVJPPrimal as CustomVJPPrimal
from weft.jax.gradient_rule import SymbolicZero as SymbolicZero
from weft.jax.gradient_rule import custom_gradient as custom_gradient
from weft.jax.gradient_rule import custom_vjp as custom_vjp
from weft.jax.tangent_rule import custom_jvp as custom_jvp

_exports.gather(globals())
