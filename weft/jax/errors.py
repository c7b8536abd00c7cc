"""`jax.errors`: what is raised when a traced function reads a value."""

from __future__ import annotations

from weft.errors import TracerError

ConcretizationTypeError = TracerError
TracerArrayConversionError = TracerError
TracerBoolConversionError = TracerError
TracerIntegerConversionError = TracerError
NonConcreteBooleanIndexError = TracerError
UnexpectedTracerError = TracerError
JAXTypeError = TracerError
JAXIndexError = IndexError
KeyReuseError = RuntimeError
JaxRuntimeError = RuntimeError

__all__ = [
    "ConcretizationTypeError", "JAXIndexError", "JAXTypeError", "JaxRuntimeError",
    "KeyReuseError", "NonConcreteBooleanIndexError", "TracerArrayConversionError",
    "TracerBoolConversionError", "TracerIntegerConversionError", "UnexpectedTracerError",
]  # fmt: skip
