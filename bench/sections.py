"""What goes into `bench/results.md`: contests of networks, first steps, agreement, rooflines."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from bench import agree, page, store
from bench.contest import Contestant, contest, report

IMAGES = ("alexnet", "vgg19", "resnet50", "mobilenet")
NETWORKS = (*IMAGES, "gnmt", "ncf")
TORCH = ["torch", "torch_compile", "torch_tuned", "torch_compile_tuned"]
TORCH_IMAGES = ["torch", "torch_channels_last", "torch_compile", "torch_channels_last_tuned",
                "torch_compile_tuned"]  # fmt: skip
ELSEWHERE = ["jax", "tf2_function"]
UNITS = {"gnmt": (16 * 50, "tokens/s"), "ncf": (16384, "samples/s")}
BATCHES = {"alexnet": 32, "vgg19": 4, "resnet50": 16, "mobilenet": 16}
INFERENCE = ("resnet50", "mobilenet")


@dataclass(frozen=True)
class Plan:
    """How to measure."""

    threads: int = 2
    rounds: int = 5
    seconds: float = 2.0  # of a turn
    only: Sequence[str] = ()  # peers; all where it is empty
    warm: bool = False  # whether code compiled by earlier processes may be used
    library: bool = True  # whether cold processes have the kernel library

    def contest(self, workload: str, names: Sequence[str]) -> list[Contestant]:
        """Weft and the chosen peers, in turns."""
        chosen = ["weft", *(n for n in names if not self.only or n in self.only)]
        return contest(workload, chosen, self.threads, self.rounds, self.seconds, not self.warm)


def peers_of(network: str) -> list[str]:
    """Who trains a network beside Weft."""
    if network not in IMAGES:
        return TORCH
    return TORCH_IMAGES + (ELSEWHERE if network == "resnet50" else [])


def keep(section: str, row: str, found: list[Contestant]) -> None:
    """Put the contest into the results, if Weft took part."""
    if not found[0].absent:
        page.write(store.save(section, row, store.cells(found)))


def training(network: str, plan: Plan) -> None:
    """A network's training step beside its peers."""
    items, unit = UNITS.get(network, (BATCHES.get(network, 0), "images/s"))
    found = plan.contest(f"training:{network}", peers_of(network))
    report(f"{page.MODELS[network]}: training step, {plan.threads} threads", found, items, unit)
    for one in found:
        if not one.absent:
            print(f"  {one.name:26} first step {one.first:6.2f} s, peak memory "
                  f"{one.resident / 2**20:6.0f} MB")  # fmt: skip
    keep("training", network, found)


def lstm(plan: Plan) -> None:
    """The language model."""
    found = plan.contest("lstm", [*TORCH, *ELSEWHERE])
    report(f"{page.OTHERS['lstm']}: training step, {plan.threads} threads", found)
    keep("others", "lstm", found)


def inference(networks: Sequence[str], plan: Plan) -> None:
    """One image at a time."""
    peers = [*TORCH_IMAGES, "onnxruntime"]
    for network in networks or INFERENCE:
        found = plan.contest(f"inference:{network}", peers)
        report(f"{page.OTHERS[network]}: inference, one image, {plan.threads} threads", found)
        keep("inference", network, found)


def agreement(networks: Sequence[str], plan: Plan) -> None:
    """The losses of 20 steps beside PyTorch's."""
    del plan
    for network in networks or NETWORKS:
        values = {**agree.report(network), **store.stamp()}
        page.write(store.save("agreement", network, values, whole=True))


def first(networks: Sequence[str], plan: Plan) -> None:
    """A new process's first training step, with nothing compiled before and with everything."""
    for network in networks or ("resnet50",):
        times: dict[str, list[float]] = {}
        for _ in range(plan.rounds):
            with tempfile.TemporaryDirectory() as folder:
                for state in ("empty cache", "full cache"):
                    one = Contestant(f"training:{network}", "weft", plan.threads, folder=folder)
                    one.start()
                    one.stop()
                    times.setdefault(state, []).append(one.first)
                    times.setdefault(f"{state}, loss", []).append(one.loss)
        middle = {state: statistics.median(found) for state, found in times.items()}
        print(f"\n{network}: first training step, its loss and all of it")
        for state in ("empty cache", "full cache"):
            print(f"  {state:12} {middle[f'{state}, loss']:6.2f} s {middle[state]:6.2f} s")
        page.write(store.save("first", network, {**middle, **store.stamp()}, whole=True))


def roofline(networks: Sequence[str], plan: Plan) -> None:
    """Each kernel of a step against the peaks measured in the same run."""
    for network in networks or NETWORKS:
        command = [sys.executable, "-m", "weft", "bench", network, "--profile", "--json",
                   "--threads", str(plan.threads)]  # fmt: skip
        said = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
        found = json.loads(said.stdout)
        print(f"\n{network}: {found['step_ms']:.1f} ms, peak "
              f"{found['peak_gflops']:.0f} GFLOP/s, {found['peak_gbytes']:.1f} GB/s")  # fmt: skip
        for kernel in found["kernels"][:12]:
            print(
                f"  {kernel['calls']:4} {kernel['ms']:9.2f} ms {kernel['gflops']:7.1f} GFLOP/s "
                f"{kernel['gbytes']:6.1f} GB/s {kernel['share']:5.0%}  {kernel['name']}"
            )
        page.write(store.save("roofline", network, {**found, **store.stamp()}, whole=True))
