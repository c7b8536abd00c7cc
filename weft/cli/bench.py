"""`weft bench`: how fast a network trains, and where a step's time goes."""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

import weft.distributed as dist
import weft.eager.functions.api as wf
from weft import config, nn
from weft.cli import bench_ranks as ranks
from weft.cli.launch import Job, launch
from weft.cli.workload import inference_step, training_step, workload
from weft.errors import ConfigError
from weft.host.cores import launched
from weft.runtime.measurement.peak import Meter, Peak
from weft.runtime.measurement.profile import (
    Profile,
    Row,
    Run,
    covered_ns,
    profile_steps,
    trace_events,
    watchers,
)
from weft.transport.tally import Span
from weft.version import __version__

WARM_UP: Final = 6  # steps after the first, which are compiled at once
LEAST: Final = 3  # timed steps
PROFILED: Final = 3  # steps
WIDTH: Final = 160  # columns of a table that goes into a file


@dataclass(frozen=True)
class Options:
    """The command line's options."""

    model: str
    batch: int | None = None
    seconds: float = 15.0
    dtype: str = "float32"
    inference: bool = False
    json: bool = False
    profile: bool = False
    trace: Path | None = None
    ranks: int = 1
    hosts: str = ""
    threads: int | None = None

    def again(self) -> tuple[str, ...]:
        """A command line with the same options."""
        words = ["-m", "weft", "bench", self.model, "--seconds", str(self.seconds)]
        words += ["--dtype", self.dtype, "--ranks", str(self.ranks)]
        words += [] if self.batch is None else ["--batch", str(self.batch)]
        words += [] if self.trace is None else ["--trace", str(self.trace.absolute())]
        flags = {"--inference": self.inference, "--json": self.json, "--profile": self.profile}
        return (*words, *[name for name, given in flags.items() if given])


@dataclass(frozen=True)
class Result:
    """The result of a benchmark; one line of JSON."""

    framework: str
    model: str
    mode: str
    batch: int
    unit: str
    throughput: float
    step_ms: float
    first_step_s: float
    params: int
    peak_rss_mb: int


def bench(options: Options) -> int:
    """Runs the command and prints its result; returns the exit code.

    Raises:
        ConfigError: there is no such model, or ranks cannot divide the batch.
    """
    if options.ranks == 1:
        run(options)
        return 0
    if options.inference:
        raise ConfigError("--inference: expected one rank, as inference does not communicate")
    workload(options.model)
    if not launched():
        job = Job(options.again(), options.ranks, options.hosts, options.threads, prefix=False)
        return launch(job)
    dist.init_process_group(world_size=options.ranks)
    run(options)
    dist.destroy_process_group()
    return 0


def run(options: Options) -> None:
    """The same on this rank."""
    work = workload(options.model)
    batch = options.batch or (1 if options.inference else work.batch)
    wf.manual_seed(0)
    model = ranks.joined(work.make())
    make = inference_step if options.inference else training_step
    step = make(work, model, ranks.share(batch), options.dtype)
    if options.profile or options.trace:
        report_profile(profile(step, options, batch), options)
    else:
        report(measure(step, model, options, batch), options)


def mode_of(options: Options) -> str:
    """The mode of the network, as one word."""
    parts = ["inference" if options.inference else "eager"]
    return "_".join(parts if options.dtype == "float32" else [*parts, options.dtype])


def measure(step: Callable[[], Any], model: nn.Module, options: Options, batch: int) -> Result:
    """Takes steps for the requested time."""
    work = workload(options.model)
    first = _seconds(step)
    warm_up(step)
    times: list[float] = []
    if options.ranks > 1:
        dist.communication_profile(reset=True)
    start = time.perf_counter()
    while ranks.agreed(time.perf_counter() - start < options.seconds or len(times) < LEAST):
        times.append(_seconds(step))
    median = statistics.median(times)
    return Result(
        framework=f"weft {__version__}", model=options.model, mode=mode_of(options), batch=batch,
        unit=work.unit, throughput=round(batch * work.items / median, 2),
        step_ms=round(median * 1e3, 2), first_step_s=round(first, 2),
        params=sum(p.numel() for p in model.parameters()),
        peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _RSS_PER_MB,
    )  # fmt: skip


_RSS_PER_MB: Final = 1 << 20 if sys.platform == "darwin" else 1 << 10


def warm_up(step: Callable[[], Any]) -> None:
    """Takes some steps, after which each has the program that it would have after many."""
    with config.override(compile=True):
        for _ in range(WARM_UP):
            step()
        wf.synchronize()


def _seconds(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    wf.synchronize()
    return time.perf_counter() - start


def report(result: Result, options: Options) -> None:
    """Prints a line of JSON, or a short table; of several ranks, the first does."""
    cost = dist.communication_profile() if options.ranks > 1 else None
    if not ranks.is_first():
        return
    if options.json:
        more = {} if cost is None else {"ranks": options.ranks, "communication": cost.as_json()}
        print(json.dumps({**asdict(result), **more}))
        return
    table = Table("", "", show_header=False, box=None)
    for name, value in (
        ("model", f"{result.model}, {result.params:,} parameters, {result.mode}"),
        ("batch", f"{result.batch:,}, on {_ranks_and_threads()}"),
        ("throughput", f"{result.throughput:,.2f} {result.unit}"),
        ("step", f"{result.step_ms:,.2f} ms"),
        ("first step", f"{result.first_step_s:,.2f} s"),
        ("peak memory", f"{result.peak_rss_mb:,} MB"),
    ):
        table.add_row(name, value)
    _console().print(table)
    if cost is not None:
        print(cost)


def _ranks_and_threads() -> str:
    count = ranks.rank_count()
    return f"{count} ranks of " * (count > 1) + f"{config.get('threads')} threads"


# -- profiles


@dataclass(frozen=True)
class Profiled:
    """The profile of a step, beside the machine's peaks at that time."""

    title: str
    profile: Profile
    peak: Peak
    covered_ns: float  # of the traced step: how long any kernel was running
    traced_ns: float
    runs: list[Run]  # of the traced step
    spans: list[Span]  # of communication, of that step


def profile(step: Callable[[], Any], options: Options, batch: int) -> Profiled:
    """Takes a few steps with clocks, between measurements of the peaks."""
    step()
    warm_up(step)
    meter = Meter(int(config.get("threads")))
    taken: list[tuple[int, list[Run], list[Span]]] = []
    meter.take()
    for _ in range(PROFILED):
        with watchers.watch() as runs, ranks.spans() as spans:
            start = time.perf_counter_ns()
            step()
            taken.append((time.perf_counter_ns() - start, runs, spans))
        meter.take()
    # All ranks show the same step: the one in which the first was fastest.
    times = np.array([one[0] for one in taken])
    total, runs, spans = taken[ranks.chosen(int(times.argmin()))]
    found = profile_steps([runs for _, runs, _ in taken], total)
    title = f"{options.model} {mode_of(options)}, batch {batch}"
    return Profiled(title, found, meter.peak, covered_ns(runs), total, runs, spans)


def report_profile(found: Profiled, options: Options) -> None:
    """Prints the table or its JSON, and writes the trace."""
    if options.trace:
        rank = ranks.rank_number()
        name = f"rank {rank}: {found.title}" if options.ranks > 1 else found.title
        trace = ranks.merged(trace_events(found.runs, name, rank, found.spans))
        if rank == 0:
            options.trace.write_text(json.dumps(trace))
    cost = dist.communication_profile() if options.ranks > 1 else None
    if not ranks.is_first():
        return
    if options.json:
        print(json.dumps(_as_json(found, options)))
        return
    console = _console()
    console.print(profile_table(found))
    console.print(
        f"peak: {found.peak.gflops:.0f} GFLOP/s, {found.peak.gbytes:.1f} GB/s, measured between "
        f"the steps; no kernel at work: {(found.traced_ns - found.covered_ns) / 1e6:.2f} ms"
    )
    if cost is not None:
        print(cost)


def profile_table(found: Profiled) -> Table:
    """One line per kernel."""
    rows = found.profile.rows
    busy = sum(row.busy_ns for row in rows) or 1.0
    table = Table(title=f"{found.title}: {found.profile.total_ns / 1e6:.2f} ms", box=None)
    for head in ("calls", "ms", "of step", "GFLOP/s", "GB/s", "of peak"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("kernel", overflow="fold")
    table.add_column("reads -> writes", overflow="fold")
    for row in rows:
        table.add_row(
            str(row.calls), f"{row.ns / 1e6:.3f}", f"{row.busy_ns / busy:.1%}", _rate(row.gflops),
            _rate(row.gbytes), f"{row.share(found.peak):.0%}", row.name, row.work,
        )  # fmt: skip
    return table


def _rate(value: float) -> str:
    return f"{value:.1f}" if value else ""


def _as_json(found: Profiled, options: Options) -> dict[str, Any]:
    return {
        "framework": f"weft {__version__}", "model": options.model, "mode": mode_of(options),
        "step_ms": round(found.profile.total_ns / 1e6, 3),
        "idle_ms": round((found.traced_ns - found.covered_ns) / 1e6, 3),
        "peak_gflops": round(found.peak.gflops, 1), "peak_gbytes": round(found.peak.gbytes, 2),
        "kernels": [_row_as_json(row, found.peak) for row in found.profile.rows],
    }  # fmt: skip


def _row_as_json(row: Row, peak: Peak) -> dict[str, Any]:
    return {
        "name": row.name, "work": row.work, "calls": row.calls, "ms": round(row.ns / 1e6, 6),
        "flops": row.flops, "bytes": row.bytes, "gflops": round(row.gflops, 2),
        "gbytes": round(row.gbytes, 2), "share": round(row.share(peak), 4),
    }  # fmt: skip


def _console() -> Console:
    """Names of kernels are long: files get wide lines."""
    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
