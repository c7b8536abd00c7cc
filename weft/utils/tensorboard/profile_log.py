"""Profiles of compiled programs: kernels with their times and memory."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from weft.eager.record.run import tier_choice
from weft.eager.record.run.async_execution import synchronize
from weft.eager.record.run.tier_choice import TierTime
from weft.errors import ArgumentError
from weft.formats.event import graph, message, plugin
from weft.formats.event.xplane import Span, xspace
from weft.runtime.measurement.kernel_run import KernelRun, kernel_runs
from weft.runtime.measurement.profile import Run, arena_map, profile_steps, trace_events, watchers
from weft.utils.tensorboard.event_log import EventLog

MOST_KERNELS: Final = 40  # lines of the table


class ProfileLog(EventLog):
    """The events with time and memory profiles; see `SummaryWriter`."""

    @contextlib.contextmanager
    def profile(self, tag: str = "profile", global_step: Any = None) -> Iterator[None]:
        """Profile the compiled programs that run inside, which must have been compiled before.

        TensorBoard shows the kernels as a graph in a separate run, colored by time or by memory
        written; a table of kernels, the tier of each run and a memory map as text; and the time and
        memory of a step as scalars. With its profile plugin it shows threads over time. The same
        data is in `<log_dir>/<tag>/<step>.trace.json` for Chrome's and Perfetto's viewers.

        Raises:
            ArgumentError: no compiled program ran inside; nothing is written.
        """
        synchronize()
        began = time.time_ns()
        with watchers.watch() as runs, tier_choice.watchers.watch() as tiers:
            clock = time.perf_counter_ns()
            yield
            synchronize()
            total = time.perf_counter_ns() - clock
        kernels = kernel_runs(runs)
        if not kernels:
            raise ArgumentError(
                "SummaryWriter.profile: expected a compiled program to run inside, got none but "
                f"{_shown(tiers)}: compile what is profiled (`config.override(compile=True)`), and "
                "look at its result (`.numpy()`, `.item()`, an optimizer's step)"
            )
        step = 0 if global_step is None else int(global_step)
        self._add_profile_texts(tag, global_step, runs, tiers, total)
        self._add_kernel_graph(tag, step, kernels)
        self._write_traces(tag, step, trace_events(runs, tag, tiers=tiers), kernels, began)

    def _add_profile_texts(
        self, tag: str, step: Any, runs: Sequence[Run], tiers: Sequence[TierTime], total: int
    ) -> None:  # fmt: skip
        arenas = [run.blueprint.arena for run in runs]
        most = max(range(len(runs)), key=lambda n: arenas[n].total)
        picture = arena_map(arenas[most], runs[most].blueprint.names)
        values = [
            plugin.text(f"{tag}/kernels", _table(runs, total)),
            plugin.text(f"{tag}/tiers", _shown(tiers)),
            plugin.text(f"{tag}/memory", _indented(picture)),
            message.scalar(f"{tag}/milliseconds", total / 1e6),
            message.scalar(f"{tag}/arena_megabytes", arenas[most].total / 1e6),
        ]
        self.add_values(values, step)

    def _add_kernel_graph(self, tag: str, step: int, kernels: Sequence[KernelRun]) -> None:
        """Written as a separate run, as a run has one graph."""
        nodes = [
            graph.NodeDef(k.name, k.kernel, k.inputs, attributes={"reads -> writes": k.work})
            for k in kernels
        ]
        first = min(k.start for k in kernels)
        times = [
            graph.NodeTime(
                k.name, (k.start - first) // 1000, -(-(k.end - k.start) // 1000), k.written,
                k.spans[0][0],
            )
            for k in kernels
        ]  # fmt: skip
        drawn, timed = graph.graph_def(nodes), graph.run_metadata(times)
        writer = self._other(os.path.join(self.log_dir, tag))
        writer.add_fields(message.graph_field(drawn), step)
        writer.add_fields(message.run_metadata_field(f"step {step}", timed), step)

    def _write_traces(
        self, tag: str, step: int, events: dict[str, Any], kernels: Sequence[KernelRun], began: int
    ) -> None:
        name = f"{tag.replace('/', '_')}-{step}"
        path = Path(self.log_dir) / tag / f"{step}.trace.json"
        path.write_text(json.dumps(events))
        folder = Path(self.log_dir) / "plugins" / "profile" / name
        folder.mkdir(parents=True, exist_ok=True)
        host = socket.gethostname()
        content = xspace(_tracks(kernels), began, host)
        (folder / f"{host}.xplane.pb").write_bytes(content)


def _table(runs: Sequence[Run], total: int) -> str:
    """The most expensive kernels as a Markdown table."""
    rows = profile_steps([runs], total).rows
    lines = [
        "| kernel | reads -> writes | calls | ms | GFLOP/s | GB/s |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows[:MOST_KERNELS]:
        rates = f"{row.gflops:.1f} | {row.gbytes:.1f}"
        lines.append(f"| {row.name} | {row.work} | {row.calls} | {row.ns / 1e6:.3f} | {rates} |")
    left = len(rows) - MOST_KERNELS
    return "\n".join([*lines, f"\n{left} more"] if left > 0 else lines)


def _shown(tiers: Sequence[TierTime]) -> str:
    """What computed how many runs: compiled programs, or lists of library kernels."""
    counts = Counter([time.tier for time in tiers])
    return ", ".join([f"{n} x {tier}" for tier, n in counts.items()]) or "nothing"


def _indented(text: str) -> str:
    """Text escaped for Markdown."""
    return "\n".join([f"    {line}" for line in text.splitlines()])


def _tracks(kernels: Sequence[KernelRun]) -> dict[str, list[Span]]:
    """The spans of each thread."""
    first = min(k.start for k in kernels)
    tracks: dict[str, list[Span]] = {}
    for k in kernels:
        about = {"work": k.work, "flops": float(k.flops), "bytes": float(k.traffic)}
        for thread, start, end in k.spans:
            track = tracks.setdefault(f"thread {thread}", [])
            track.append(Span(k.kernel, start - first, end - first, about))
    return dict(sorted(tracks.items()))
