"""Clicks by a wide and deep model: `python examples/wide_and_deep.py`.

The recipe of production: tables of embeddings on servers, which workers update asynchronously, and
dense parameters on each worker, whose gradients an all-reduce averages. This starts the servers,
and the workers as ranks of MPI; the first server also gives out the data, shard by shard, to the
worker that is free. Prints the area under the ROC curve (0.5 by chance) on clicks that nobody has
trained on, as the worker that ends last sees it.

The clicks are generated: users, ads and pages have hidden tastes. Ids are hashes of 64 bits, as a
log has them; nothing counts them beforehand.
"""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
from common import options

import weft as wf
import weft.horovod.torch as hvd
from weft.cluster import ClusterSpec, HashTables, Server, Shards, TableOptions
from weft.metrics import AUROC
from weft.nn import functional as F
from weft.table import FTRL, Adagrad, Uniform

BATCH, WIDTH, TASTES = 256, 8, 4
COUNTS = {"user": 2000, "ad": 500, "page": 100}
TEST = 1 << 40  # the number of the first row to test with
DEEP = {name: TableOptions(WIDTH, Adagrad(0.2), Uniform(-0.1, 0.1)) for name in COUNTS}
WIDE = {
    f"wide {name}": TableOptions(1, FTRL(0.1, l1=0.001), Uniform(-1e-4, 1e-4), admit=2)
    for name in (*COUNTS, "user x page")
}


def hashed(numbers: np.ndarray, salt: int) -> np.ndarray:
    """Numbers of 64 bits that look random."""
    x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt << 32)
    x = (x ^ (x >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(29))


def unit(numbers: np.ndarray, salt: int) -> np.ndarray:
    """Uniform in (0, 1)."""
    return (hashed(numbers, salt) >> np.uint64(11)).astype(float) * 2.0**-53


def clicks(rows: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Ids by feature, dense features, and clicks of some rows of the log."""
    ids: dict[str, np.ndarray] = {}
    tastes: dict[str, np.ndarray] = {}
    for salt, (name, count) in enumerate(COUNTS.items()):
        numbers = (unit(rows, salt) ** 2 * count).astype(np.int64)  # some occur often
        ids[name] = hashed(numbers, 100 + salt).view(np.int64)
        hidden = [unit(numbers, 10 * salt + 200 + i) - 0.5 for i in range(TASTES + 1)]
        tastes[name] = np.stack(hidden, 1)
    hour = unit(rows, 50)
    score = 12 * (tastes["user"][:, 1:] * tastes["ad"][:, 1:]).sum(1) + np.sin(6 * hour)
    score += 2 * sum(taste[:, 0] for taste in tastes.values()) - 1
    clicked = unit(rows, 51) < 1 / (1 + np.exp(-score))
    return ids, np.stack([hour, hour**2], 1).astype(np.float32), clicked.astype(np.float32)


def crossed(ids: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The ids of all tables: each feature's for both parts, and a cross of two."""
    both = hashed(ids["user"].view(np.uint64) ^ hashed(ids["page"].view(np.uint64), 7), 8)
    wide = {f"wide {name}": x for name, x in ids.items()} | {
        "wide user x page": both.view(np.int64)
    }
    return {**ids, **wide}


class WideAndDeep(wf.nn.Module):
    """A network on embeddings and dense features, plus the sum of wide weights."""

    def __init__(self) -> None:
        super().__init__()
        self.deep = wf.nn.Sequential(
            wf.nn.Linear(len(DEEP) * WIDTH + len(DEEP) + 2, 32), wf.nn.ReLU(),
            wf.nn.Linear(32, 1),
        )  # fmt: skip

    def forward(self, rows: dict[str, wf.Tensor], dense: wf.Tensor) -> wf.Tensor:
        """The logits of clicks."""
        deep = [rows[name] for name in DEEP]
        pairs = [(deep[i] * deep[i - 1]).sum(1, keepdim=True) for i in range(len(deep))]
        wide = sum(rows[name] for name in WIDE)
        return (self.deep(wf.cat([*deep, *pairs, dense], 1)) + wide)[:, 0]


def work(given: Namespace) -> float | None:
    """A worker: train until there are no more shards; the last one tests."""
    servers = given.connect.split(",")
    hvd.init()
    wf.manual_seed(0)
    model = WideAndDeep()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    adam = wf.optim.Adam(model.parameters(), lr=3e-3)
    optimizer = hvd.DistributedOptimizer(adam, named_parameters=model.named_parameters())
    tables = HashTables({**DEEP, **WIDE}, servers)
    shards = Shards(given.steps, size=4, chief=servers[0], timeout=30.0)
    for batch in shards.elements():
        ids, dense, clicked = clicks(np.arange(batch * BATCH, (batch + 1) * BATCH))
        ids = crossed(ids)
        rows = {name: wf.tensor(x, requires_grad=True) for name, x in tables.lookup(ids).items()}
        loss = F.binary_cross_entropy_with_logits(model(rows, wf.tensor(dense)), wf.tensor(clicked))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # waits for the other workers' gradients
        # The loss is a mean over the batch; a row takes the whole gradient of its clicks
        tables.update(ids, {name: BATCH * x.grad.numpy() for name, x in rows.items()})
    last = hvd.join()
    if hvd.rank() != last:
        return None
    area = test(model, tables)
    seen = sum(size[0] for size in tables.sizes().values())
    print(f"{seen} ids in {len(tables.tables)} tables on {len(servers)} servers")
    print(f"AUC {area:.3f}", flush=True)
    return area


def test(model: WideAndDeep, tables: HashTables) -> float:
    """The area under the ROC curve on rows that nobody has trained on."""
    ids, dense, clicked = clicks(np.arange(TEST, TEST + 5000))
    found = tables.lookup(crossed(ids), insert=False)
    with wf.no_grad():
        scores = model({name: wf.tensor(x) for name, x in found.items()}, wf.tensor(dense))
    metric = AUROC()
    metric.update(scores.sigmoid(), wf.tensor(clicked).long())
    return float(metric.compute())


@contextmanager
def serving(count: int) -> Iterator[list[str]]:
    """Servers as processes of their own; their addresses."""
    with ExitStack() as stack:
        addresses: list[str] = []
        for _ in range(count):
            command = [sys.executable, __file__, "--serve"]
            server = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(server.terminate)
            assert server.stdout is not None
            addresses.append(server.stdout.readline().strip())
        yield addresses


def serve() -> None:
    """A server, until it is terminated."""
    with Server(ClusterSpec({"ps": ["127.0.0.1:0"]}), "ps", 0) as server:
        print(server.target.partition("//")[2], flush=True)
        server.join()


def main(arguments: Sequence[str] | None = None) -> float | None:
    """Be a server or a worker, or start all; returns the area under the ROC curve."""
    parser = options(__doc__, 1200)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--serve", action="store_true", help="be a server")
    parser.add_argument("--connect", default="", help="be a worker with these servers")
    given = parser.parse_args(arguments)
    if given.serve:
        return serve()
    if given.connect:
        return work(given)
    with serving(given.servers) as addresses:
        workers = subprocess.run(
            [
                sys.executable, "-m", "weft", "launch", "-n", str(given.workers), __file__,
                "--steps", str(given.steps), "--connect", ",".join(addresses),
            ],
            stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
    print(workers.stdout, end="")
    found = re.search(r"AUC (\S+)", workers.stdout)
    assert found is not None
    return float(found[1])


if __name__ == "__main__":
    main()
