"""Servers in processes of their own, for tests."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys

SERVE = """
import json, sys
import weft.tf1 as tf
cluster, job, index, options = json.loads(sys.argv[1])
server = tf.train.Server(cluster, job, index, config=tf.ConfigProto(**options))
print("ready", flush=True)
server.join()
"""


def free_addresses(count):
    """Addresses with ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return found


class Cluster:
    """Processes of a cluster, by job and number.

    Args:
        jobs: how many tasks each job has.
        options: of each server's `ConfigProto`.
    """

    def __init__(self, jobs, **options):
        addresses = iter(free_addresses(sum(jobs.values())))
        self.spec = {job: [next(addresses) for _ in range(n)] for job, n in jobs.items()}
        self.options = options
        self.processes = {}
        self.starting = []
        for job, tasks in self.spec.items():
            for index in range(len(tasks)):
                self.start(job, index)
        self.wait()

    def start(self, job, index):
        told = json.dumps([self.spec, job, index, self.options])
        made = subprocess.Popen(
            [sys.executable, "-c", SERVE, told], stdout=subprocess.PIPE, text=True
        )
        if (job, index) in self.processes:
            self.processes[job, index].stdout.close()
        self.processes[job, index] = made
        self.starting.append(made)

    def wait(self):
        """Wait until those that have been started listen."""
        for process in self.starting:
            assert process.stdout.readline() == "ready\n"
        self.starting = []

    def target(self, job, index=0):
        return f"grpc://{self.spec[job][index]}"

    def send(self, job, index, number):
        self.processes[job, index].send_signal(number)

    def stop(self):
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        return [
            (process.wait(10), process.stdout.close())[0] for process in self.processes.values()
        ]
