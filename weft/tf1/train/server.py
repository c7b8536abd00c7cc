"""`tf.train.Server`: a task of a cluster in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from weft.cluster.rpc import RpcOptions
from weft.cluster.server import Server as ClusterServer
from weft.cluster.spec import ClusterDef, ClusterSpec, JobDef, ServerDef
from weft.documentation import Reads
from weft.errors import ArgumentError, DTypeError, WeftError
from weft.tf1.errors import translate
from weft.tf1.session.options import ConfigProto

__all__ = ["ClusterDef", "ClusterSpec", "JobDef", "Server", "ServerDef"]


class Server:
    """A task of a cluster: a master for sessions, and a worker for the masters of all tasks.

    Args:
        server_or_cluster_def: a `ServerDef`, or the cluster: a `ClusterSpec`, `ClusterDef` or dict.
        job_name: the job of this task; may be left out if there is one job.
        task_index: its number in the job; may be left out if the job has one task.
        protocol: `grpc`.
        config: `device_count` and `intra_op_parallelism_threads` of the task.
        start: whether it listens at once.
        options: token, TLS, limits and times of connections.
        listen: where it listens, if not at its address in the cluster: `0.0.0.0:2222`.

    Raises:
        InvalidArgumentError: there is no such task.
        UnavailableError: it cannot listen at its address.
    """

    def __init__(
        self, server_or_cluster_def: Any, job_name: str | None = None,
        task_index: int | None = None, protocol: str | None = None,
        config: ConfigProto | None = None, start: bool = True,
        options: RpcOptions | None = None, listen: str = "",
    ) -> None:  # fmt: skip
        self._def = _server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        chosen: ConfigProto = self._def.default_session_config or ConfigProto()
        try:
            self._server = ClusterServer(
                ClusterSpec(self._def.cluster), self._def.job_name, self._def.task_index,
                chosen.device_count.get("CPU", 1), chosen.intra_op_parallelism_threads or None,
                options, listen,
            )  # fmt: skip
            if start:
                self._server.start()
        except WeftError as error:
            raise translate(error) from error

    @staticmethod
    def create_local_server(config: ConfigProto | None = None, start: bool = True) -> Server:
        """A server of a cluster of its own, at a port that the system chooses.

        Args:
            config: as for a server.
            start: whether it listens at once.
        """
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)

    server_def = Reads[ServerDef]("_def", "What the server is, as plain data.")
    target = Reads[str]("_server.target", "What sessions connect to: `grpc://host:port`.")

    def start(self) -> None:
        """Listen; nothing if it does already."""
        try:
            self._server.start()
        except WeftError as error:
            raise translate(error) from error

    def join(self) -> None:
        """Wait until the server is stopped; Ctrl-C and SIGTERM stop it."""
        self._server.join()

    def stop(self) -> None:
        """End it: sessions are closed, calls of other tasks fail."""
        self._server.stop()


def _server_def(
    given: Any, job: str | None, index: int | None, protocol: str | None, config: Any
) -> ServerDef:
    """The whole definition, with what may be left out.

    Raises:
        DTypeError: it is no definition of a server or cluster.
        ArgumentError: what is left out is not clear.
    """
    if isinstance(given, ServerDef):
        known = given
    elif isinstance(given, ClusterSpec | ClusterDef | Mapping):
        known = ServerDef(ClusterSpec(cast(Any, given)).as_cluster_def(), "", -1, "")
    else:
        raise DTypeError(f"Server: expected a ServerDef, a ClusterSpec or a dict, got {given!r}")
    protocol = protocol or known.protocol or "grpc"
    if protocol != "grpc":
        raise ArgumentError(f"Server: expected protocol='grpc', got {protocol!r}")
    spec = ClusterSpec(known.cluster)
    name: str = job or known.job_name or _only(spec.jobs, "job_name")
    number: int = known.task_index if index is None else index
    if index is None and number < 0:
        number = _only(spec.task_indices(name), f"task_index of job {name!r}")
    config = config or known.default_session_config
    return ServerDef(spec.as_cluster_def(), name, number, protocol, config, known.port)


def _only(found: list[Any], what: str) -> Any:
    if len(found) != 1:
        raise ArgumentError(f"Server: expected {what}, one of {', '.join(map(str, found))}")
    return found[0]
