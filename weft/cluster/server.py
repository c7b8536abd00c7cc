"""A server: one task of a cluster, which is a master for clients and a worker for masters."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Final

from weft.cluster.links import PATIENT, Links, name_of
from weft.cluster.master.desk import Desk
from weft.cluster.master.master import Master
from weft.cluster.rpc import Listener, Message, Peer, RpcOptions
from weft.cluster.rpc.address import host_and_port
from weft.cluster.shards.service import ShardService
from weft.cluster.spec import ClusterSpec
from weft.cluster.status import status_of
from weft.cluster.table.remote import answered
from weft.cluster.worker.worker import Worker
from weft.errors import ArgumentError, UnavailableError, WeftError
from weft.host.crew import Crew
from weft.ir.device import DeviceName
from weft.runtime.device.local import cpu_devices
from weft.table.host import TableHost

LOOK_SECONDS: Final = 0.5
"""How often `join` looks: a signal that another thread receives does not wake the main thread."""
STATUS_SECONDS: Final = 2.0
"""How long a task may take to tell its status."""
Answer = Message | Future[Message]
_running: Final[dict[str, Server]] = {}  # by target


class Server:
    """One task of a cluster.

    Args:
        cluster: all tasks; a port of 0 is chosen by the system.
        job_name: the job of this task.
        task_index: its number in the job.
        devices: how many processors it has as devices, each with its own threads.
        threads: of each device; `WEFT_THREADS` by default.
        options: token, TLS, limits and times of connections.
        listen: where it listens, if not at its address in `cluster`: `0.0.0.0:2222`, for example.

    Attributes:
        target: what sessions connect to.
        tables: the hash tables that it has.
        shards: the data shards that it gives out.

    Raises:
        ArgumentError: there is no such task in the cluster, or its address is none.
        UnavailableError: it cannot listen there.
    """

    def __init__(
        self, cluster: ClusterSpec, job_name: str, task_index: int, devices: int = 1,
        threads: int | None = None, options: RpcOptions | None = None, listen: str = "",
    ) -> None:  # fmt: skip
        address = cluster.task_address(job_name, task_index)
        self._host, self._port = host_and_port(address)
        self.spec, self.task = cluster, name_of(DeviceName(job_name, 0, task_index))
        self.options = PATIENT if options is None else options
        self._wanted = listen or address
        self._crew = Crew("weft-server")
        self._links = Links(cluster, self.task, self.options)
        own = cpu_devices(devices, threads, DeviceName.parse(self.task))
        self.worker = Worker(self.task, own, self._links, self._crew)
        self.master = Master(self.worker, self._links, self._crew)
        self._desk = Desk(self.master)
        self.tables = TableHost()
        self.shards = ShardService()
        self._handlers = self._all_handlers()
        self._stopped = threading.Event()
        self._listener: Listener | None = None
        self._lock = threading.Lock()

    # -- its life

    def start(self) -> None:
        """Listen; nothing if it does already."""
        with self._lock:
            if self._listener is not None:
                return
            if self._stopped.is_set():
                raise ArgumentError(f"{self.task}: the server is stopped; make another one")
            self._listener = Listener(self._wanted, self._handle, self.options)
            self._port = self._port or self._listener.port
            self._links.addresses[self.task] = f"{self._host}:{self._port}"
            _running[self.target] = self

    @property
    def target(self) -> str:
        """What sessions connect to: `grpc://host:port`."""
        return f"grpc://{self._host}:{self._port}"

    def stop(self) -> None:
        """End it: sessions are closed, calls of others fail."""
        with self._lock:
            listener, self._listener = self._listener, None
            if self._stopped.is_set():
                return
            _running.pop(self.target, None)
        self.master.close()
        self.worker.close()
        self._links.close()
        if listener is not None:
            listener.stop()
        self._crew.shutdown(wait=False)
        self._stopped.set()

    def join(self) -> None:
        """Wait until it is stopped; Ctrl-C and SIGTERM stop it."""
        with _terminated():
            try:
                while not self._stopped.wait(LOOK_SECONDS):
                    pass
            except (KeyboardInterrupt, SystemExit):
                self.stop()
                raise

    def check_running(self) -> None:
        """Raise if it is stopped.

        Raises:
            UnavailableError: it is.
        """
        if self._stopped.is_set():
            raise UnavailableError(f"{self.task} is stopped")

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # -- messages

    def _all_handlers(self) -> dict[str, Callable[[Message, Peer], Answer]]:
        worker, desk = self.worker, self._desk
        return {
            "join": self._join,
            "ping": lambda message, peer: Message("pong"),
            "register": lambda message, peer: worker.register(message, peer),
            "run": lambda message, peer: worker.run(message, peer.moved),
            "deliver": lambda message, peer: worker.deliver(message),
            "finish": lambda message, peer: worker.finish(message),
            "abort": lambda message, peer: worker.abort(message),
            "release": self._release,
            "state": lambda message, peer: worker.store.ask(message, peer.moved),
            "resource": lambda message, peer: worker.call(message, peer),
            "give up": lambda message, peer: worker.store.calls.give_up(message),
            "tables": lambda message, peer: self._crew.submit(answered, self.tables, message),
            "shards": lambda message, peer: self._crew.submit(self.shards.answer, message, peer),
            "reset": self._reset,
            "status": lambda message, peer: self._status(),
            "status of all": lambda message, peer: self._crew.submit(self._status_of_all),
            "client open": desk.open,
            "client function": lambda message, peer: desk.function(message),
            "client step": lambda message, peer: desk.step(message),
            "client describe": lambda message, peer: desk.describe(message),
            "client state": desk.ask,
            "client call": lambda message, peer: desk.call(message),
            "client give up step": lambda message, peer: desk.give_up(message),
            "client give up": lambda message, peer: desk.calls.give_up(message),
            "client close": lambda message, peer: desk.close(message),
            "client reset": self._reset_all,
        }

    def _handle(self, message: Message, peer: Peer) -> Answer:
        handler = self._handlers.get(message.kind)
        if handler is None:
            raise ArgumentError(f"{self.task}: unknown request {message.kind!r}")
        return handler(message, peer)

    def _join(self, message: Message, peer: Peer) -> Message:
        """A master in another task wants to use this one."""
        head = message.head
        if head["to"] != self.task:
            raise ArgumentError(
                f"cluster: {head['from']} expects {head['to']} at {self._host}:{self._port}, "
                f"where {self.task} is"
            )
        other = ClusterSpec.heard(head["spec"])
        if difference := self.spec.contradiction(other):
            raise ArgumentError(
                f"cluster: the spec of {self.task} differs from that of {head['from']}: "
                f"{difference}; start all tasks with one spec"
            )
        peer.on_close(lambda: self.worker.left(peer))
        devices = [device.attributes for device in self.worker.devices.values()]
        return Message("joined", {"incarnation": self.worker.incarnation, "devices": devices})

    def _release(self, message: Message, peer: Peer) -> Message:
        self.worker.release(message.head["session"])
        return Message("released")

    def _status(self) -> Message:
        master, worker = self.master, self.worker
        waits = [wait for session in master.sessions for wait in session.waits()]
        told = status_of(worker, len(master.sessions), [*waits, *worker.waits()])
        return Message("status", told)

    def _status_of_all(self) -> Message:
        """The status of each task; of one that does not answer, why."""
        others = [task for task in self._links.addresses if task != self.task]
        asked = {task: self._crew.submit(self._status_at, task) for task in others}
        rows = [self._status().head, *[future.result() for future in asked.values()]]
        return Message("status", {"tasks": sorted(rows, key=lambda row: row["task"])})

    def _status_at(self, task: str) -> dict[str, Any]:
        try:
            link = self._links.alive(task, STATUS_SECONDS)
            return link.channel.call(Message("status"), STATUS_SECONDS).head
        except WeftError as error:
            return {"task": task, "error": str(error)}

    def _reset(self, message: Message, peer: Peer) -> Message:
        self.worker.store.reset(message.head["containers"])
        return Message("reset")

    def _reset_all(self, message: Message, peer: Peer) -> Future[Message]:
        return self._crew.submit(self._reset_now, message.head["containers"])

    def _reset_now(self, containers: list[str]) -> Message:
        self.master.reset(containers)
        return Message("reset")


def server_at(target: str) -> Server | None:
    """The server of this process with a target."""
    return _running.get(target)


@contextlib.contextmanager
def _terminated() -> Iterator[None]:
    """SIGTERM raises SystemExit, if this is the main thread and the signal is handled as usual."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, frame: object) -> None:
        del frame
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
