"""Every convolution of four networks alone, beside PyTorch: `python -m bench convs`.

Forward and both gradients. PyTorch runs oneDNN on channels_last tensors in a process of its own,
with the C library's allocator tuned; both take turns. Means are geometric, and weighted: how many
times what PyTorch needs for all of a network's convolutions.
`python -m bench.conv [--kind KIND] [NAME ...]` runs some of them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.single import Bench, wanted
from weft import ops
from weft.codegen import target as targets
from weft.codegen.convolution import conv as family
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ops.convolution.convolution import conv_geometry
from weft.passes.group import Group
from weft.passes.launch import Launch

KINDS = {"forward": "conv", "input": "conv_grad_input", "weight": "conv_grad_weight"}


@dataclass(frozen=True)
class Layer:
    """One convolution of a network on square images."""

    images: int
    size: int
    channels: int
    columns: int
    taps: int
    stride: int = 1
    padding: int = 0
    groups: int = 1

    @property
    def x(self) -> tuple[int, ...]:
        return self.images, self.size, self.size, self.channels

    @property
    def w(self) -> tuple[int, ...]:
        return self.taps, self.taps, self.channels // self.groups, self.columns

    @property
    def flops(self) -> float:
        result = (self.size + 2 * self.padding - self.taps) // self.stride + 1
        return 2.0 * self.images * result**2 * math.prod(self.w)

    @property
    def name(self) -> str:
        kind = "depthwise" if self.groups > 1 else f"{self.channels}-{self.columns}"
        own = f"x{self.channels}" if self.groups > 1 else ""
        over = f"/{self.stride}" if self.stride > 1 else ""
        return f"{self.taps}x{self.taps}{over} {self.size}{own} {kind}"

    def launches(self, kind: str) -> tuple[Launch, ...]:
        """The kernels of the operation alone."""
        rules: dict[str, Any] = {
            "strides": (self.stride,) * 2, "padding": ((self.padding,) * 2,) * 2,
            "dilation": (1, 1), "groups": self.groups,
        }  # fmt: skip
        output = conv_geometry(self.x, self.w, **rules).output
        with Graph().as_default():
            shapes = self.x, self.w, (self.images, *output, self.columns)
            x, w, g = (ops.placeholder(dtype=float32, shape=s) for s in shapes)
            if kind == "forward":
                node = ops.conv(x, w, **rules).node
            elif kind == "input":
                node = ops.conv_grad_input(g, w, shape=self.x, **rules).node
            else:
                node = ops.conv_grad_weight(x, g, shape=self.w, **rules).node
        group = Group((node,), node.data_inputs, node.outputs)
        return getattr(family, KINDS[kind])(group, targets.current())


def _vgg() -> list[tuple[int, Layer]]:
    sizes = [(1, 224, 3, 64), (1, 224, 64, 64), (1, 112, 64, 128), (1, 112, 128, 128),
             (1, 56, 128, 256), (3, 56, 256, 256), (1, 28, 256, 512), (3, 28, 512, 512),
             (4, 14, 512, 512)]  # fmt: skip
    return [(count, Layer(4, size, x, y, 3, 1, 1)) for count, size, x, y in sizes]


def _resnet() -> list[tuple[int, Layer]]:
    found = [(1, Layer(16, 224, 3, 64, 7, 2, 3))]
    before = 64
    for width, blocks, size in ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)):
        stride = 1 if width == 64 else 2
        found += [
            (1, Layer(16, size * stride, before, width, 1)),
            (1, Layer(16, size * stride, width, width, 3, stride, 1)),
            (1, Layer(16, size * stride, before, 4 * width, 1, stride)),
            (blocks, Layer(16, size, width, 4 * width, 1)),
            (blocks - 1, Layer(16, size, 4 * width, width, 1)),
            (blocks - 1, Layer(16, size, width, width, 3, 1, 1)),
        ]
        before = 4 * width
    return found


def _mobilenet() -> list[tuple[int, Layer]]:
    found, before, size = [(1, Layer(16, 224, 3, 32, 3, 2, 1))], 32, 112
    for count, width, stride in (
        (1, 64, 1), (1, 128, 2), (1, 128, 1), (1, 256, 2), (1, 256, 1), (1, 512, 2),
        (5, 512, 1), (1, 1024, 2), (1, 1024, 1),
    ):  # fmt: skip
        found.append((count, Layer(16, size, before, before, 3, stride, 1, before)))
        size //= stride
        found.append((count, Layer(16, size, before, width, 1)))
        before = width
    return found


ALEXNET = [
    (1, Layer(32, 224, 3, 64, 11, 4, 2)), (1, Layer(32, 27, 64, 192, 5, 1, 2)),
    (1, Layer(32, 13, 192, 384, 3, 1, 1)), (1, Layer(32, 13, 384, 256, 3, 1, 1)),
    (1, Layer(32, 13, 256, 256, 3, 1, 1)),
]  # fmt: skip
NETWORKS = {"alexnet": ALEXNET, "vgg19": _vgg(), "resnet50": _resnet(), "mobilenet": _mobilenet()}


def measure(
    names: Sequence[str] = (),
    kinds: Sequence[str] = tuple(KINDS),
    threads: int = 2,
    rounds: int = 4,
) -> None:
    """Measure and print the convolutions whose network's or own name begins so."""
    bench = Bench("bench.work.conv_torch", threads, rounds)
    for network, layers in NETWORKS.items():
        for count, layer in layers:
            if not wanted(names, (network, layer.name)):
                continue
            for kind in kinds:
                bench.run(
                    (network, count, layer.name, kind), layer.launches(kind), layer.flops,
                    x=layer.x, w=layer.w, stride=layer.stride, padding=layer.padding,
                    groups=layer.groups,
                )  # fmt: skip
    bench.report()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.conv", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks, or layers' names")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    measure(given.names, given.kind or tuple(KINDS), given.threads, given.rounds)


if __name__ == "__main__":
    main()
