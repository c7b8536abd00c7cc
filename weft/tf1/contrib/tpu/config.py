"""Settings of `tf.contrib.tpu`."""

from __future__ import annotations

from typing import Any, Final

from weft.errors import ArgumentError
from weft.tf1.estimator.modes import RunConfig as _RunConfig
from weft.tf1.framework.graph import fail

__all__ = ["InputPipelineConfig", "RunConfig", "TPUConfig"]


class InputPipelineConfig:
    """How input functions run on a TPU's hosts; accepted."""

    PER_SHARD_V1: Final = 1
    PER_HOST_V1: Final = 2
    PER_HOST_V2: Final = 3
    BROADCAST: Final = 4


class TPUConfig:
    """Settings of a TPU; accepted.

    Args:
        iterations_per_loop: accepted.
        num_shards: accepted.
        options: of TensorFlow's further arguments; accepted.
    """

    def __init__(
        self, iterations_per_loop: int = 2, num_shards: int | None = None, **options: Any
    ) -> None:
        self.iterations_per_loop, self.num_shards = iterations_per_loop, num_shards
        vars(self).update(options)


class RunConfig(_RunConfig):
    """How an estimator runs.

    Args:
        tpu_config: accepted.
        evaluation_master, master: empty.
        cluster: `None`.
        options: as of `tf.estimator.RunConfig`.

    Raises:
        ArgumentError: a TPU or a cluster is asked for.
    """

    def __init__(
        self, tpu_config: TPUConfig | None = None, evaluation_master: str | None = None,
        master: str | None = None, cluster: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        asked = cluster or master or evaluation_master
        if asked:
            raise fail(ArgumentError, f"tpu.RunConfig: expected no TPU and no cluster, got {asked}")
        super().__init__(**options)
        self.tpu_config = tpu_config or TPUConfig()
