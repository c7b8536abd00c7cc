"""What packages ask of JAX's own parts: traces by name, lists of files, events for monitors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.eager.record.pending.state import trace
from weft.func.tree import NODES
from weft.jax.key import extended
from weft.jax.numpy.kind import finfo
from weft.mirror.supplied.jax_primitive import Primitive
from weft.mirror.supplied.same import no, nothing, same

__all__ = [
    "DType", "KeyPath", "TypePromotionError", "extended", "finfo", "get_abstract_mesh",
    "get_opaque_trace_state", "global_result_handlers", "supports_inf", "trace_state_clean",
]  # fmt: skip

DType = Any
KeyPath = tuple[Any, ...]
TypePromotionError = TypeError
api_boundary = aval_method = aval_property = same
exclude_paths: Final[list[str]] = []
global_result_handlers: Final[dict[Any, Any]] = {}
canonicalize_dtype_handlers: Final = {np.ndarray: same}
pytype_aval_mappings: Final = {np.ndarray: same}
record_event = record_event_duration_secs = record_scalar = nothing
register_exclusion = register_hitype = wait_for_tokens = nothing
include_frame = no


class ExtendedDType:
    """The class of dtypes of one's own, which packages declare."""


class Effect:
    """The class of effects, which packages declare."""


class HiPrimitive(Primitive):
    """An operation on types of one's own, which packages declare."""


class Effects:
    """Effects that loops may have: nothing asks for them."""

    add_type = staticmethod(nothing)


control_flow_allowed_effects: Final = Effects()


class Registry:
    """The classes of containers: `kind in registry`."""

    def __contains__(self, kind: type) -> bool:
        return kind in (list, tuple, dict, type(None)) or kind in NODES


registry: Final = Registry()


@dataclass(frozen=True)
class TraceState:
    """How many functions are being traced, one inside the other."""

    depth: int


def get_opaque_trace_state(convention: str | None = None) -> TraceState:
    """What differs inside a traced function: objects are to be changed where they were made."""
    del convention
    return TraceState(trace.now.depth)


def trace_state_clean() -> bool:
    """Whether no function is being traced."""
    return trace.now.depth == 0


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype has infinities: those of 16 bits and more have."""
    return finfo(dtype).bits >= 16


@dataclass(frozen=True)
class AbstractMesh:
    """A mesh of devices; there is one device, and the mesh is empty."""

    axis_sizes: tuple[int, ...] = ()
    axis_names: tuple[str, ...] = ()
    empty: bool = True
    are_all_axes_explicit: bool = False

    @property
    def shape(self) -> dict[str, int]:
        """The size of each axis."""
        return dict(zip(self.axis_names, self.axis_sizes, strict=True))


@dataclass(frozen=True)
class ProcessState:
    """What `jax.distributed` would have begun: there is one process, and no client."""

    process_id: int = 0
    num_processes: int = 1
    client: None = None
    service: None = None
    coordinator_address: None = None
    preemption_sync_manager: None = None


global_state: Final = ProcessState()


def get_abstract_mesh() -> AbstractMesh:
    """The mesh that is in use: an empty one."""
    return AbstractMesh()
