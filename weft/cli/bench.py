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

from rich.console import Console
from rich.table import Table

import weft.eager.functions.api as wf
from weft import config, nn
from weft.cli.workload import inference_step, training_step, workload
from weft.runtime.measurement.peak import Meter, Peak
from weft.runtime.measurement.profile import (
    Profile,
    Row,
    Run,
    covered_ns,
    profile_steps,
    trace_events,
    watch,
)
from weft.version import __version__

WARM_UP: Final = 2  # steps after the first: an optimiser's state is new in the first one
LEAST: Final = 3  # timed steps
PROFILED: Final = 3  # steps
WIDTH: Final = 160  # columns of a table that goes into a file


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    model: str
    batch: int | None = None
    seconds: float = 15.0
    dtype: str = "float32"
    inference: bool = False
    json: bool = False
    profile: bool = False
    trace: Path | None = None


@dataclass(frozen=True)
class Result:
    """What a run of the benchmark found; one line of JSON."""

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


def bench(options: Options) -> None:
    """Do what the command line asks for, and print what was found.

    Raises:
        ConfigError: there is no such model.
    """
    work = workload(options.model)
    batch = options.batch or (1 if options.inference else work.batch)
    wf.manual_seed(0)
    model = work.make()
    make = inference_step if options.inference else training_step
    step = make(work, model, batch, options.dtype)
    if options.profile or options.trace:
        report_profile(profile(step, options, batch), options)
    else:
        report(measure(step, model, options, batch), options)


def mode_of(options: Options) -> str:
    """How the network is run, as one word."""
    parts = ["inference" if options.inference else "eager"]
    return "_".join(parts if options.dtype == "float32" else [*parts, options.dtype])


def measure(step: Callable[[], Any], model: nn.Module, options: Options, batch: int) -> Result:
    """Take steps for as long as asked."""
    work = workload(options.model)
    first = _seconds(step)
    for _ in range(WARM_UP):
        step()
    times: list[float] = []
    start = time.perf_counter()
    while time.perf_counter() - start < options.seconds or len(times) < LEAST:
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


def _seconds(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    wf.synchronize()
    return time.perf_counter() - start


def report(result: Result, options: Options) -> None:
    """Print a line of JSON, or a short table."""
    if options.json:
        print(json.dumps(asdict(result)))
        return
    table = Table("", "", show_header=False, box=None)
    for name, value in (
        ("model", f"{result.model}, {result.params:,} parameters, {result.mode}"),
        ("batch", f"{result.batch:,}, on {config.get('threads')} threads"),
        ("throughput", f"{result.throughput:,.2f} {result.unit}"),
        ("step", f"{result.step_ms:,.2f} ms"),
        ("first step", f"{result.first_step_s:,.2f} s"),
        ("peak memory", f"{result.peak_rss_mb:,} MB"),
    ):
        table.add_row(name, value)
    _console().print(table)


# -- profiles


@dataclass(frozen=True)
class Profiled:
    """The profile of a step, beside what the machine could do meanwhile."""

    title: str
    profile: Profile
    peak: Peak
    covered_ns: float  # of the traced step: how long any kernel was at work
    traced_ns: float
    runs: list[Run]  # of the traced step


def profile(step: Callable[[], Any], options: Options, batch: int) -> Profiled:
    """Take a few steps with clocks, between measurements of the peaks."""
    for _ in range(1 + WARM_UP):
        step()
    meter = Meter(int(config.get("threads")))
    taken: list[tuple[int, list[Run]]] = []
    meter.take()
    for _ in range(PROFILED):
        with watch() as runs:
            start = time.perf_counter_ns()
            step()
            taken.append((time.perf_counter_ns() - start, runs))
        meter.take()
    total, runs = min(taken, key=lambda one: one[0])
    found = profile_steps([runs for _, runs in taken], total)
    title = f"{options.model} {mode_of(options)}, batch {batch}"
    return Profiled(title, found, meter.peak, covered_ns(runs), total, runs)


def report_profile(found: Profiled, options: Options) -> None:
    """Print the table or its JSON, and write the trace."""
    if options.trace:
        options.trace.write_text(json.dumps(trace_events(found.runs, found.title)))
    if options.json:
        print(json.dumps(_as_json(found, options)))
        return
    console = _console()
    console.print(profile_table(found))
    console.print(
        f"peak: {found.peak.gflops:.0f} GFLOP/s, {found.peak.gbytes:.1f} GB/s, measured between "
        f"the steps; no kernel at work: {(found.traced_ns - found.covered_ns) / 1e6:.2f} ms"
    )


def profile_table(found: Profiled) -> Table:
    """A line for each kernel."""
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
        "name": row.name, "work": row.work, "calls": row.calls, "ms": round(row.ns / 1e6, 4),
        "flops": row.flops, "bytes": row.bytes, "gflops": round(row.gflops, 2),
        "gbytes": round(row.gbytes, 2), "share": round(row.share(peak), 4),
    }  # fmt: skip


def _console() -> Console:
    """Names of kernels are long: what is no terminal gets wide lines."""
    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
