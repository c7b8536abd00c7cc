"""Which backend a session runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.host.deferred import Deferred
from weft.tf1.errors import translated
from weft.tf1.framework.graph import Graph
from weft.tf1.session.backend import Backend, ProcessBackend
from weft.tf1.session.options import ConfigProto, check

if TYPE_CHECKING:
    from weft.tf1.session import cluster_backend, local_devices
else:
    cluster_backend = Deferred("weft.tf1.session.cluster_backend")
    local_devices = Deferred("weft.tf1.session.local_devices")


@translated()
def backend_for(target: str, config: ConfigProto | None, graph: Graph) -> Backend:
    """What a session of a graph, with this target and these options, runs on.

    Raises:
        OpError: the target does not answer, or an option is wrong.
    """
    if config is not None:
        check(config)
    if target not in ("", "local"):
        return cluster_backend.ClusterBackend(target, config, graph)
    if config is not None and config.device_count.get("CPU", 1) > 1:
        return local_devices.LocalDevicesBackend(config, graph)
    return ProcessBackend(config, graph)
