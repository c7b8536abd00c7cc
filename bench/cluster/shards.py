"""Data shards given out to whoever is free, with one slow worker: `python -m bench.cluster.shards`.

Four workers in processes of their own work on a shard for 20 ms each; then one of them takes three
times as long. With equal shares, all wait for it. What shards given out restore is told as a part
of the difference between equal shares and the least time that these workers need (bar: 95%).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

WORKERS, SHARDS = 4, 400
SECONDS, SLOWED = 0.02, 3
BAR = 0.95


def work(address: str, seconds: float, shares: int, number: int) -> None:
    """A worker: shards from the chief, or its share of them."""
    from weft.cluster import Shards

    shards = Shards(SHARDS, chief=address, timeout=30.0) if not shares else None
    print("ready", flush=True)
    sys.stdin.readline()
    if shards is None:
        for _ in range(number, SHARDS, shares):
            time.sleep(seconds)
    else:
        for _ in shards:
            time.sleep(seconds)
    print("done", flush=True)


def measured(slow: bool, given_out: bool) -> float:
    """Seconds until all shards are done."""
    from weft.cluster import ClusterSpec, Server

    with Server(ClusterSpec({"chief": ["127.0.0.1:0"]}), "chief", 0) as chief:
        address = chief.target.partition("//")[2]
        shares = "0" if given_out else str(WORKERS)
        workers = [
            subprocess.Popen(
                [
                    sys.executable, "-m", "bench.cluster.shards", "--work", address,
                    str(SECONDS * (SLOWED if slow and n == 0 else 1)), shares, str(n),
                ],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for n in range(WORKERS)
        ]  # fmt: skip
        for worker in workers:
            assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
        begin = time.perf_counter()
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("\n")
            worker.stdin.flush()
        for worker in workers:
            assert worker.stdout is not None and worker.stdout.readline() == "done\n"
        seconds = time.perf_counter() - begin
        for worker in workers:
            worker.communicate()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", nargs=4)
    given = parser.parse_args()
    if given.work:
        address, seconds, shares, number = given.work
        return work(address, float(seconds), int(shares), int(number))
    even = measured(False, True)
    equal, free = measured(True, False), measured(True, True)
    least = SHARDS * SECONDS / (WORKERS - 1 + 1 / SLOWED)
    restored = (equal - free) / (equal - least)
    print(f"{SHARDS} shards of {SECONDS * 1e3:.0f} ms, {WORKERS} workers: {even:.2f} s")
    print(f"  one slowed {SLOWED}x: equal shares {equal:.2f} s, given out {free:.2f} s, ", end="")
    print(f"least {least:.2f} s: {restored:.0%} restored (bar: {BAR:.0%})")


if __name__ == "__main__":
    main()
