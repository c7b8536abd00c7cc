"""Options of sessions: `tf.ConfigProto` and what it holds.

What has no effect here changes no result: it is about GPUs, about how TensorFlow rewrites graphs,
or about threads between operations, of which there are none, as a step is one program.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from weft.errors import ConfigError, DTypeError
from weft.tf1.session.message import message

__all__ = ["ConfigProto", "GPUOptions", "GraphOptions", "OptimizerOptions"]


@message
class GPUOptions:
    """Options of GPUs, of which there are none: accepted, without effect.

    Args:
        per_process_gpu_memory_fraction, allocator_type, deferred_deletion_bytes, allow_growth,
        visible_device_list, polling_active_delay_usecs, polling_inactive_delay_msecs,
        force_gpu_compatible: as in TensorFlow.
    """

    per_process_gpu_memory_fraction: float = 0.0
    allocator_type: str = ""
    deferred_deletion_bytes: int = 0
    allow_growth: bool = False
    visible_device_list: str = ""
    polling_active_delay_usecs: int = 0
    polling_inactive_delay_msecs: int = 0
    force_gpu_compatible: bool = False


@message
class OptimizerOptions:
    """How TensorFlow would rewrite a graph: accepted, without effect.

    Args:
        do_common_subexpression_elimination, do_constant_folding, opt_level,
        do_function_inlining, global_jit_level, max_folded_constant_in_bytes: as in TensorFlow.
    """

    L1: ClassVar[int] = 0
    L0: ClassVar[int] = -1
    DEFAULT: ClassVar[int] = 0
    OFF: ClassVar[int] = -1
    ON_1: ClassVar[int] = 1
    ON_2: ClassVar[int] = 2

    do_common_subexpression_elimination: bool = False
    do_constant_folding: bool = False
    opt_level: int = 0
    do_function_inlining: bool = False
    global_jit_level: int = 0
    max_folded_constant_in_bytes: int = 0


@message
class GraphOptions:
    """How TensorFlow would run a graph: accepted, without effect but for what changes results.

    Args:
        enable_recv_scheduling, optimizer_options, build_cost_model, build_cost_model_after,
        infer_shapes, place_pruned_graph, timeline_step, rewrite_options: as in TensorFlow.
        enable_bfloat16_sendrecv: refused; values are sent as they are.
    """

    enable_recv_scheduling: bool = False
    optimizer_options: OptimizerOptions = field(default_factory=OptimizerOptions)
    build_cost_model: int = 0
    build_cost_model_after: int = 0
    infer_shapes: bool = False
    place_pruned_graph: bool = False
    enable_bfloat16_sendrecv: bool = False
    timeline_step: int = 0
    rewrite_options: Any = None


@message
class ConfigProto:
    """Options of a session.

    Args:
        device_count: how many devices of each kind this process has: `{"CPU": 2}` are two, each
            with its own threads. GPUs are accepted, and there are none.
        intra_op_parallelism_threads: threads of each device, 256 at most; 0 is all.
        inter_op_parallelism_threads, use_per_session_threads, session_inter_op_thread_pool,
        placement_period: without effect.
        device_filters: which tasks of a cluster the session sees, as `/job:ps`; all by default.
        gpu_options: without effect.
        allow_soft_placement: whether another device of the same process will do where an
            operation's does not exist.
        log_device_placement: whether to print where each operation is, to the standard error.
        graph_options: without effect.
        operation_timeout_in_ms: how long a run may wait; 0 is forever.
        rpc_options, share_cluster_devices_in_session: of a cluster.
        isolate_session_state: refused with a cluster, whose sessions share variables.
        cluster_def: refused; a cluster is told to its servers.

    >>> import weft.tf1 as tf
    >>> tf.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)
    device_count {
      key: "CPU"
      value: 2
    }
    allow_soft_placement: true
    <BLANKLINE>
    """

    device_count: dict[str, int] = field(default_factory=dict[str, int])
    intra_op_parallelism_threads: int = 0
    placement_period: int = 0
    device_filters: list[str] = field(default_factory=list[str])
    inter_op_parallelism_threads: int = 0
    gpu_options: GPUOptions = field(default_factory=GPUOptions)
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    use_per_session_threads: bool = False
    graph_options: GraphOptions = field(default_factory=GraphOptions)
    operation_timeout_in_ms: int = 0
    session_inter_op_thread_pool: list[Any] = field(default_factory=list[Any])
    rpc_options: Any = None
    cluster_def: Any = None
    isolate_session_state: bool = False
    share_cluster_devices_in_session: bool = False


def check(config: ConfigProto) -> None:
    """Refuses options that would change results, or have no meaning.

    Raises:
        ConfigError: names the option.
        DTypeError: a number is none.
    """
    if config.graph_options.enable_bfloat16_sendrecv:
        raise ConfigError.here("ConfigProto: values are sent as they are: leave out "
                               "enable_bfloat16_sendrecv=True")  # fmt: skip
    if config.cluster_def is not None:
        raise ConfigError.here("ConfigProto: expected no cluster_def: give it to tf.train.Server")
    for kind, count in config.device_count.items():
        if isinstance(count, bool) or not isinstance(count, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DTypeError.here(f"device_count: expected a number of {kind}s, got {count!r}")
        if count < (kind == "CPU"):
            raise ConfigError.here(f"device_count: expected a CPU or more, got {count} of {kind}")
