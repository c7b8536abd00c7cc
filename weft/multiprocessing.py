"""Python's `multiprocessing`, with PyTorch's functions that run one function in several processes.

Tensors are passed by value, as arrays are; those of `share_memory_` share their memory, so that
processes train one model. Ranks of a job are not started so, but by `weft launch`: see
`weft.distributed`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from weft.eager.record.pending.state import compute_all_pending
from weft.eager.tensor.interchange.interchange import on_shared, shared_parts
from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError, WorkerError
from weft.nn.parameter import Buffer, Parameter


class ProcessException(WorkerError):
    """A process of `spawn` has failed.

    Attributes:
        error_index: which one, from 0.
        error_pid: its number in the system.
    """

    def __init__(self, text: str, index: int, pid: int | None) -> None:
        super().__init__(text)
        self.msg, self.error_index, self.error_pid = text, index, pid
        self.pid = pid


class ProcessRaisedException(ProcessException):
    """The function has raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process has ended otherwise.

    Attributes:
        exit_code: the code; negative numbers are signals.
        signal_name: the name of the signal, if it was one.
    """

    def __init__(
        self, text: str, index: int, pid: int | None, exit_code: int, signal_name: str | None
    ) -> None:
        super().__init__(text, index, pid)
        self.exit_code, self.signal_name = exit_code, signal_name


class ProcessContext:
    """Processes that run one function.

    Attributes:
        processes: the processes, in the order of their indices.
    """

    def __init__(self, processes: Sequence[BaseProcess], errors: Sequence[Any]) -> None:
        self.processes = list(processes)
        self._errors = errors

    def pids(self) -> list[int | None]:
        """The processes' numbers in the system."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one has failed, or all have ended; whether all have ended well.

        Args:
            timeout: seconds to wait at most.
            grace_period: seconds that the others have to end by themselves when one has failed.

        Raises:
            ProcessRaisedException: the function has raised in one; the others are stopped.
            ProcessExitedException: one has ended otherwise than by returning.
        """
        end = None if timeout is None else time.monotonic() + timeout
        running = [p for p in self.processes if p.exitcode is None]
        while running and not any([p.exitcode for p in self.processes]):
            left = None if end is None else max(0.0, end - time.monotonic())
            if not connection.wait([p.sentinel for p in running], left):
                return False
            running = [p for p in running if p.exitcode is None]
        for index, process in enumerate(self.processes):
            if process.exitcode:
                self._stop(running, grace_period)
                raise self._failure(index, process, process.exitcode)
        return True

    def _stop(self, running: Sequence[BaseProcess], grace_period: float | None) -> None:
        end = time.monotonic() + (grace_period or 0.0)
        for process in running:
            process.join(max(0.0, end - time.monotonic()))
        for process in running:
            process.terminate()
        for process in running:
            process.join(5.0)
            process.kill()  # does nothing where it has ended
            process.join()

    def _failure(self, index: int, process: BaseProcess, code: int) -> ProcessException:
        with contextlib.suppress(EOFError):  # it has ended without a word
            text = f"process {index} raised:\n\n{self._errors[index].recv()}"
            return ProcessRaisedException(text, index, process.pid)
        name = signal.Signals(-code).name if code < 0 else None
        how = f"was ended by {name}" if name else f"ended with exit code {code}"
        return ProcessExitedException(f"process {index} {how}", index, process.pid, code, name)


SpawnContext = ProcessContext


def _run(function: Callable[..., Any], index: int, args: Sequence[Any], error: Any) -> None:
    try:
        function(index, *args)
    except KeyboardInterrupt:
        sys.exit(1)
    except Exception:
        error.send(traceback.format_exc())
        sys.exit(1)


def start_processes(
    fn: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Run `fn(i, *args)` in process i of several.

    Args:
        fn: a function that can be imported.
        nprocs: the number of processes.
        join: whether to wait for them; see `ProcessContext.join`.
        daemon: whether they end with this process.
        start_method: `spawn`, `fork` or `forkserver`.

    Returns:
        The processes, unless `join`.

    Raises:
        ArgumentError: `nprocs` is negative, or there is no such way to start processes.
    """
    if nprocs < 0:
        raise ArgumentError(f"start_processes: expected nprocs of 0 or more, got {nprocs}")
    if start_method not in multiprocessing.get_all_start_methods():
        known = ", ".join(multiprocessing.get_all_start_methods())
        raise ArgumentError(f"start_processes: expected one of {known}, got {start_method!r}")
    compute_all_pending()  # instead of in each process
    context: Any = multiprocessing.get_context(start_method)
    processes: list[BaseProcess] = []
    errors: list[Any] = []
    for i in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        errors.append(receiver)
    found = ProcessContext(processes, errors)
    if not join:
        return found
    found.join()
    return None


def spawn(
    fn: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Run `fn(i, *args)` in process i of several new ones; see `start_processes`."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def _reduced(x: Tensor) -> Any:
    """How a tensor is passed to another process."""
    parts = shared_parts(x)
    if parts is None:
        return x.__reduce_ex__(2)
    memory, what = parts
    return _shared, (DupFd(memory), what)


def _shared(memory: Any, what: tuple[Any, ...]) -> Tensor:
    return on_shared(memory.detach(), what)


for _kind in (Tensor, Parameter, Buffer):
    ForkingPickler.register(_kind, _reduced)


def get_all_sharing_strategies() -> set[str]:
    """How memory can be shared: by descriptors of files."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """How memory is shared: `file_descriptor`."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Has no effect: descriptors are used, of tensors that the program shares itself.

    Raises:
        ArgumentError: there is no such strategy.
    """
    known = sorted(get_all_sharing_strategies())
    if new_strategy not in known:
        raise ArgumentError(f"set_sharing_strategy: expected one of {known}, got {new_strategy!r}")


def __getattr__(name: str) -> Any:
    return getattr(multiprocessing, name)
