"""A server in a process of its own: prints its port, ends when its input ends."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np

from weft.cluster.rpc import Listener, Message, RpcOptions

blocked: list[Future] = []


def answer(message, peer):
    if message.kind == "block":
        blocked.append(Future())
        return blocked[-1]
    if message.kind == "blocked":
        return Message("blocked", {"count": len(blocked)})
    if message.kind == "sleep":
        time.sleep(message.head["seconds"])
    if message.kind == "ones":
        return Message("ones", {}, [np.ones(message.head["size"], np.uint8)])
    if message.kind == "files":
        return Message("files", {"count": len(os.listdir("/proc/self/fd"))})
    return Message(message.kind, message.head, message.arrays)


class ServerProcess:
    """Starts it, and kills it in the end."""

    def __init__(self, **options):
        root = Path(__file__).parents[3]
        self.process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(options)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(root)},
        )  # fmt: skip
        line = self.process.stdout.readline()
        self.address = f"127.0.0.1:{int(line)}"

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        """Stop it (SIGSTOP), and wait until it is: the signal takes a moment."""
        os.kill(self.pid, signal.SIGSTOP)
        while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.001)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


if __name__ == "__main__":
    with Listener("127.0.0.1:0", answer, RpcOptions(**json.loads(sys.argv[1]))) as listener:
        print(listener.port, flush=True)
        sys.stdin.read()
