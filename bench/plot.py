"""Plots as SVG, written by hand: bars of ratios, and kernels under their roofline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

# Okabe and Ito's colors, told apart also by those who see fewer.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#999999", "#000000")
PEERS = {
    "torch": "PyTorch", "torch_channels_last": "PyTorch channels_last",
    "torch_compile": "PyTorch compile", "torch_tuned": "PyTorch, tuned",
    "torch_channels_last_tuned": "channels_last, tuned", "torch_compile_tuned": "compile, tuned",
    "jax": "JAX", "tf2_function": "TensorFlow",
}  # fmt: skip
COLOR_OF = dict(zip(PEERS, COLORS, strict=True))
WIDTH, LEFT, RIGHT, TOP = 900, 130, 60, 76
BAR, GAP = 13, 16


class Drawing:
    """Shapes and text of one picture."""

    def __init__(self, width: float, height: float) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'font-family="sans-serif" font-size="12">',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        ]

    def text(self, x: float, y: float, text: str, anchor: str = "start", **style: object) -> None:
        more = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
        )

    def line(
        self, x: float, y: float, to_x: float, to_y: float, color: str, dash: str = ""
    ) -> None:
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" '
            f'stroke="{color}"{dashed}/>'
        )

    def box(self, x: float, y: float, width: float, height: float, color: str) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{color}"/>'
        )

    def dot(self, x: float, y: float, radius: float, color: str, title: str) -> None:
        self.parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{color}" '
            f'fill-opacity="0.55" stroke="{color}"><title>{escape(title)}</title></circle>'
        )

    def legend(self, entries: Iterable[tuple[str, str]], x: float, y: float, step: float) -> None:
        """Boxes with their meaning, as many in a line as fit."""
        across, down = x, y
        for color, label in entries:
            if across + step > WIDTH:
                across, down = x, down + 18
            self.box(across, down - 10, 12, 12, color)
            self.text(across + 17, down, label)
            across += step

    def write(self, file: Path) -> None:
        file.write_text("\n".join([*self.parts, "</svg>"]) + "\n")


def bars(rows: Mapping[str, Any], titles: Mapping[str, str], file: Path) -> None:
    """A bar for each peer of each network: its time divided by Weft's, with the spread."""
    shown = [(name, [p for p in PEERS if "ratio" in rows[name].get(p, {})]) for name in titles
             if name in rows]  # fmt: skip
    most = max((rows[n][p]["ratio_high"] for n, ps in shown for p in ps), default=1.0)
    ticks = _steps(max(most, 1.0))
    height = TOP + sum(len(ps) * BAR + GAP for _, ps in shown) + 30
    scale = (WIDTH - LEFT - RIGHT) / ticks[-1]
    picture = Drawing(WIDTH, height)
    picture.text(WIDTH / 2, 22, "Time of a training step, divided by Weft's (above 1: Weft is "
                 "faster)", "middle", font_size=15)  # fmt: skip
    present = [p for p in PEERS if any(p in ps for _, ps in shown)]
    picture.legend(((COLOR_OF[p], PEERS[p]) for p in present), 20, 44, 175)
    for tick in ticks:
        x = LEFT + tick * scale
        picture.line(x, TOP, x, height - 26, "#dddddd")
        picture.text(x, height - 10, f"{tick:g}", "middle")
    y = TOP + GAP / 2
    for name, members in shown:
        picture.text(LEFT - 8, y + len(members) * BAR / 2 + 4, titles[name], "end")
        for peer in members:
            _bar(picture, rows[name][peer], COLOR_OF[peer], y, scale)
            y += BAR
        y += GAP
    picture.line(LEFT + scale, TOP, LEFT + scale, height - 26, "#000000", "4 3")
    picture.write(file)


def _bar(picture: Drawing, cell: Mapping[str, float], color: str, y: float, scale: float) -> None:
    picture.box(LEFT, y + 1, cell["ratio"] * scale, BAR - 2, color)
    low, high = (LEFT + cell[f"ratio_{end}"] * scale for end in ("low", "high"))
    picture.line(low, y + BAR / 2, high, y + BAR / 2, "#000000")
    picture.text(high + 4, y + BAR - 3, f"{cell['ratio']:.2f}", font_size=10)


def _steps(most: float) -> list[float]:
    """Round numbers from 0 to at least `most`, at most ten of them."""
    step = next(s for s in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 500.0) if most / s <= 9)
    return [step * i for i in range(math.ceil(most / step) + 1)]


def roofline(rows: Mapping[str, Any], titles: Mapping[str, str], file: Path) -> None:
    """Kernels of all networks, each against the peaks of its own run, so that they share a roof."""
    points = {name: _points(rows[name]) for name in titles if name in rows}
    height, bottom = 520, 470
    picture = Drawing(WIDTH, height)
    picture.text(WIDTH / 2, 22, "Kernels of a training step; area: share of its time", "middle",
                 font_size=15)  # fmt: skip
    colors = dict(zip(points, COLORS, strict=False))
    picture.legend(((colors[n], titles[n]) for n in points), 60, 44, 135)
    left, right, decades = 70.0, WIDTH - 30.0, (-3, 2)

    def x_of(value: float) -> float:
        share = (_log(value) - decades[0]) / (decades[1] - decades[0])
        return left + min(max(share, 0.0), 1.0) * (right - left)

    def y_of(value: float) -> float:
        share = (_log(value) + 3) / 3.6
        return bottom - min(max(share, 0.0), 1.0) * (bottom - TOP)

    for decade in range(decades[0], decades[1] + 1):
        x = x_of(10.0**decade)
        picture.line(x, TOP, x, bottom, "#dddddd")
        picture.text(x, bottom + 16, f"{10.0**decade:g}", "middle")
    for percent in (0.1, 1.0, 10.0, 50.0, 100.0):
        y = y_of(percent / 100)
        picture.line(left, y, right, y, "#dddddd")
        picture.text(left - 6, y + 4, f"{percent:g}%", "end")
    picture.line(x_of(1e-3), y_of(1e-3), x_of(1), y_of(1), "#000000")
    picture.line(x_of(1), y_of(1), right, y_of(1), "#000000")
    for name, found in points.items():
        for across, up, share, label in sorted(found, key=lambda p: -p[2]):
            picture.dot(x_of(across), y_of(up), 2 + 22 * math.sqrt(share), colors[name], label)
    picture.text((left + right) / 2, height - 12, "floating-point operations a byte, divided by "
                 "those at which peak arithmetic meets peak traffic", "middle")  # fmt: skip
    picture.text(14, 60, "GFLOP/s of peak")
    picture.write(file)


def _points(row: Mapping[str, Any]) -> list[tuple[float, float, float, str]]:
    """Intensity over the ridge's, share of peak arithmetic, share of time, name."""
    total = sum(k["ms"] for k in row["kernels"]) or 1.0
    ridge = row["peak_gflops"] / row["peak_gbytes"]
    return [
        (k["flops"] / k["bytes"] / ridge, k["gflops"] / row["peak_gflops"], k["ms"] / total,
         f"{k['name']}: {k['gflops']:.1f} GFLOP/s, {k['gbytes']:.1f} GB/s, {k['ms']:.2f} ms")
        for k in row["kernels"]
        if k["flops"] and k["bytes"] and k["ms"] / total >= 1e-3
    ]  # fmt: skip


def _log(value: float) -> float:
    return math.log10(max(value, 1e-9))
