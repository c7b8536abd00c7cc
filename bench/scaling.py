"""Training steps on 10 to 10,000 workers, simulated: what an alpha-beta model lets one expect.

A step of a worker takes a random time; gradients come in buckets during its last part; each bucket
is reduced once all workers have it and the one before is done. `python -m bench.scaling` prints
tables and draws `scaling.svg`; `python -m bench.distributed scaling` compares with steps of 1 to 4
ranks on this machine.

A message costs `alpha` seconds and `beta` a byte (Hockney 1994). The two rounds of Weft's
all-reduce and the ring of Patarasuk and Yuan (2009) send as many bytes from each rank,
`2 n (p - 1) / p`; a tree by halving and doubling (Thakur et al. 2005) takes `2 log2(p)` messages.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.plot import COLORS, Drawing

SEED = 0
STEPS = 200
WORKERS = (1, 2, 4, 10, 30, 100, 300, 512, 1000, 3000, 10_000)
PICTURE = Path(__file__).with_name("scaling.svg")


@dataclass(frozen=True)
class Network:
    """What connects workers.

    Attributes:
        alpha: seconds for a message.
        beta: seconds for a byte, of what a worker sends.
        tree: whether the number of messages grows with log2 of the workers, not with them.
        workers_per_link: workers of one host, which reduce among themselves first and send the
            result over the host's link together.
    """

    alpha: float
    beta: float
    tree: bool = False
    workers_per_link: int = 1

    def reduction(self, size: float, workers: int) -> float:
        """Seconds of an all-reduce of so many bytes."""
        hosts = -(-workers // self.workers_per_link)
        if hosts == 1:
            return 0.0
        rounds = 2 * math.log2(hosts) if self.tree else 2 * (hosts - 1)
        return rounds * self.alpha + 2 * size * (hosts - 1) / hosts * self.beta


@dataclass(frozen=True)
class Training:
    """A step of one worker.

    Attributes:
        seconds: its median time.
        sigma: of the normal distribution of the time's logarithm.
        bytes: of all gradients.
        bucket: of a bucket.
        backward: the part of the step in which gradients come, its last part.
        late: how the share of gradients that are there grows in that part: 1 evenly, above 1 most
            come late.
    """

    seconds: float
    bytes: float
    sigma: float = 0.02
    bucket: float = 8 * 2**20
    backward: float = 2 / 3
    late: float = 1.0

    def buckets(self) -> list[tuple[float, float]]:
        """Of each bucket, its bytes and the share of the step after which it is there."""
        count = max(1, math.ceil(self.bytes / self.bucket))
        shares = [((i + 1) / count) ** (1 / self.late) for i in range(count)]
        return [(self.bytes / count, 1 - self.backward * (1 - share)) for share in shares]


def step_seconds(training: Training, network: Network, workers: int, steps: int = STEPS) -> float:
    """The mean time of a synchronous step on so many workers."""
    random = np.random.default_rng([SEED, workers])
    slowest = np.empty(steps)
    for step in range(steps):
        drawn = random.lognormal(math.log(training.seconds), training.sigma, workers)
        slowest[step] = drawn.max()
    done = np.zeros(steps)
    for size, share in training.buckets():
        done = np.maximum(done, slowest * share) + network.reduction(size, workers)
    return float(np.maximum(done, slowest).mean())


def efficiency(training: Training, network: Network, workers: int) -> float:
    """Throughput of so many workers, divided by so many times that of one."""
    alone = training.seconds * math.exp(training.sigma**2 / 2)
    return alone / step_seconds(training, network, workers)


GIGABIT = Network(50e-6, 8e-9)
TEN_GIGABIT = replace(GIGABIT, beta=8e-10)
ROCE = Network(10e-6, 8 / 25e9, workers_per_link=4)
"""Horovod's: 128 servers of four GPUs, 25 Gbit/s with RoCE."""

# Seconds: batch 64 on one P100, by the images/s of TensorFlow's benchmark page (2017); ResNet-101
# by Horovod's documentation, 1,656.82 on 16 GPUs. Of VGG-16's gradients nine tenths, those of its
# dense layers, come in the first tenth of the backward pass. Buckets are Horovod's, of 64 MiB.
_FUSION = 64 * 2.0**20
PUBLISHED = {
    "Inception V3": (Training(64 / 142, 95e6, bucket=_FUSION), 0.90),
    "ResNet-101": (Training(16 * 64 / 1656.82, 178e6, bucket=_FUSION), 0.90),
    "VGG-16": (Training(64 / 154, 553e6, bucket=_FUSION, late=0.05), 0.68),
}
"""Sergeev and Del Balso (2018), arXiv 1802.05799: scaling efficiency on 512 GPUs."""

# Medians of a step that does nothing but fetch parameters from 16 servers and send updates, on 1
# and on 100 workers: Abadi et al. (2016), OSDI, section 6.2.
NULL_STEPS = {
    "one number a server": (1.8e-3, 8.8e-3), "100 MB": (0.147, 0.613), "1 GB": (1.01, 7.16),
}  # fmt: skip


def tables() -> None:
    """Print what the model says, beside what others have published."""
    step = Training(0.25, 244e6)
    print("\nEfficiency of a 0.25 s step with 244 MB of gradients (AlexNet's)")
    print(f"  {'workers':>8} {'1 Gbit/s':>9} {'10 Gbit/s':>10} {'10, tree':>9}")
    for workers in WORKERS:
        found = [
            efficiency(step, network, workers)
            for network in (GIGABIT, TEN_GIGABIT, replace(TEN_GIGABIT, tree=True))
        ]
        print(f"  {workers:>8,} {found[0]:9.0%} {found[1]:10.0%} {found[2]:9.0%}")
    print("\nOn Horovod's 512 GPUs: the model, and what was published")
    for name, (training, published) in PUBLISHED.items():
        print(f"  {name:14} {efficiency(training, ROCE, 512):5.0%} {published:5.0%}")
    print("\nA step that only exchanges, 1 and 100 workers: TensorFlow's servers, this model")
    for name, (one, many) in NULL_STEPS.items():
        size = {"one number a server": 64.0, "100 MB": 1e8, "1 GB": 1e9}[name]
        ours = TEN_GIGABIT.reduction(size, 100)
        print(f"  {name:20} {one * 1e3:8.1f} {many * 1e3:8.1f} ms; {ours * 1e3:8.1f} ms")


def picture(file: Path = PICTURE) -> None:
    """Draw efficiency by the number of workers."""
    width, height, left, right, top, bottom = 900.0, 420.0, 70.0, 690.0, 50.0, 370.0
    drawing = Drawing(width, height)
    drawing.text(width / 2, 24, "Simulated scaling: throughput, divided by workers times one's",
                 "middle", font_size=15)  # fmt: skip

    def x_of(workers: float) -> float:
        return left + math.log10(workers) / 4 * (right - left)

    def y_of(share: float) -> float:
        return bottom - share * (bottom - top)

    for decade in range(5):
        drawing.line(x_of(10.0**decade), top, x_of(10.0**decade), bottom, "#dddddd")
        drawing.text(x_of(10.0**decade), bottom + 18, f"{10**decade:,}", "middle")
    for percent in range(0, 101, 20):
        drawing.line(left, y_of(percent / 100), right, y_of(percent / 100), "#dddddd")
        drawing.text(left - 8, y_of(percent / 100) + 4, f"{percent}%", "end")
    drawing.text((left + right) / 2, bottom + 38, "workers", "middle")
    for number, (name, curve) in enumerate(_curves().items()):
        color = COLORS[number]
        points = [(x_of(w), y_of(curve(w))) for w in WORKERS]
        for (x, y), (to_x, to_y) in itertools.pairwise(points):
            drawing.line(x, y, to_x, to_y, color)
        drawing.box(right + 14, top + 24 * number, 12, 12, color)
        drawing.text(right + 32, top + 24 * number + 10, name)
    for number, (name, (_, published)) in enumerate(PUBLISHED.items()):
        drawing.dot(x_of(512), y_of(published), 5, COLORS[3 + number], f"{name}, published")
    for number, text in enumerate(("dots: published,", "Horovod on 512 GPUs")):
        drawing.text(right + 14, top + 24 * 6 + 10 + 18 * number, text)
    drawing.write(file)


def _curves() -> dict[str, Callable[[int], float]]:
    step = Training(0.25, 244e6)
    networks = {
        "AlexNet, 1 Gbit/s": (step, GIGABIT), "AlexNet, 10 Gbit/s": (step, TEN_GIGABIT),
        "AlexNet, 10 Gbit/s, tree": (step, replace(TEN_GIGABIT, tree=True)),
        **{f"{name}, RoCE": (training, ROCE) for name, (training, _) in PUBLISHED.items()},
    }  # fmt: skip
    return {
        name: lambda workers, pair=pair: efficiency(*pair, workers)
        for name, pair in networks.items()
    }


if __name__ == "__main__":
    tables()
    picture()
