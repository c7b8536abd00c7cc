"""Messages between two processes of this machine: round trips, and bandwidth beside a memory copy:
`python -m bench.cluster.messages`.

A server in a process of its own answers; both paths, shared memory and gRPC, in turns.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from bench.distributed import ROOT
from weft.cluster.rpc import Channel, Listener, Message, Peer, RpcOptions, connect, segment

SIZE: Final = 100 << 20
CALLS: Final = 3000
ROUNDS: Final = 9
PATHS: Final = {"shared memory": RpcOptions(), "gRPC": RpcOptions(shared_memory=False)}
BARS: Final = {"shared memory": 100e-6, "gRPC": 300e-6}
"""Seconds of a round trip of a small message."""
SHARE: Final = 0.7
"""Of a memory copy's bandwidth, for 100 MB through shared memory."""
GRPC_RATE: Final = 1e9
"""Bytes per second over gRPC."""


class Server:
    """Answers with arrays: kept ones are copied to be sent, written ones are in shared memory."""

    def __init__(self) -> None:
        self._kept: dict[int, np.ndarray[Any, Any]] = {}

    def __call__(self, message: Message, peer: Peer) -> Message:
        """The answer to a message."""
        if message.kind == "echo":
            return message
        if message.kind == "take":
            return Message("taken", {"last": int(message.arrays[0][-1])})
        size = message.head["size"]
        if message.kind == "write":
            x = segment.pool().allocate((size,), np.uint8)
            x.fill(1)
            return Message("written", {}, [x])
        if size not in self._kept:
            self._kept[size] = np.ones(size, np.uint8)
        return Message("kept", {}, [self._kept[size]])


def serve() -> None:
    with Listener("127.0.0.1:0", Server()) as listener:
        print(listener.port, flush=True)
        sys.stdin.read()


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The address of a server in a process of its own, while inside."""
    command = [sys.executable, "-m", "bench.cluster.messages", "serve"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield f"127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def round_trip(channel: Channel) -> float:
    """Seconds of a call with a small array, the median of many."""
    message = Message("echo", {"step": 1}, [np.zeros(4, np.float32)])
    for _ in range(CALLS // 10):
        channel.call(message)
    taken: list[float] = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        channel.call(message)
        taken.append(time.perf_counter() - begin)
    return float(np.median(taken))


def rates(works: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Bytes per second of works that move `SIZE` bytes, in turns: the medians."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 2):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            if number >= 2:  # memory is mapped on first use
                taken[name].append(time.perf_counter() - begin)
    return {name: SIZE / float(np.median(times)) for name, times in taken.items()}


def works(channel: Channel) -> dict[str, Callable[[], object]]:
    """What moves 100 MB."""
    x, y = np.ones(SIZE, np.uint8), np.zeros(SIZE, np.uint8)
    ask = {"size": SIZE}
    return {
        "memory copy": lambda: np.copyto(y, x),
        "server sends what it keeps": lambda: channel.call(Message("keep", ask)),
        "server writes, then sends": lambda: channel.call(Message("write", ask)),
        "client sends what it keeps": lambda: channel.call(Message("take", {}, [x])),
    }


def main() -> None:
    with server() as address:
        for name, options in PATHS.items():
            with connect(address, options) as channel:
                seconds, found = round_trip(channel), rates(works(channel))
                copy = found["memory copy"]
                bar = SHARE * copy if name == "shared memory" else GRPC_RATE
                print(f"{name}\n  round trip {seconds * 1e6:.0f} us (bar: {BARS[name] * 1e6:.0f})")
                for what, rate in found.items():
                    wanted = "" if what == "memory copy" else f" (bar: {bar / 1e9:.1f})"
                    print(f"  {what}: {rate / 1e9:.2f} GB/s{wanted}, {rate / copy:.2f} of a copy")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
