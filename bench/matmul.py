"""Matrix products alone, beside PyTorch (MKL): `python -m bench products`.

The dense layers of the six networks, the perceptron and the decoder, forward and both gradients,
as weights lie in PyTorch's layers; and cubes. Means are geometric, and weighted: how many times
what PyTorch needs for all products of a network. `python -m bench.matmul [--kind KIND] [NAME ...]`
runs some of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bench.single import Bench, wanted
from weft import ops
from weft.codegen import target as targets
from weft.codegen.contraction.matmul import matmul
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.passes.group import Group
from weft.passes.launch import Launch


@dataclass(frozen=True)
class Case:
    """One product, `m x k` by `k x n`; a turned operand lies transposed in memory."""

    m: int
    k: int
    n: int
    turn_x: bool = False
    turn_y: bool = False
    dtype: str = "float32"

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.k * self.n

    @property
    def name(self) -> str:
        return f"{self.m}{'t' * self.turn_x}x{self.k}x{self.n}{'t' * self.turn_y}"

    def launches(self) -> tuple[Launch, ...]:
        dtype = as_dtype(self.dtype)
        with Graph().as_default():
            x = ops.placeholder(
                dtype=dtype, shape=(self.k, self.m) if self.turn_x else (self.m, self.k)
            )
            y = ops.placeholder(
                dtype=dtype, shape=(self.n, self.k) if self.turn_y else (self.k, self.n)
            )
            out = ops.matmul(x, y, transpose_x=self.turn_x, transpose_y=self.turn_y)
        return matmul(Group((out.node,), (x, y), (out,)), targets.current())


def layer(rows: int, inputs: int, outputs: int) -> dict[str, Case]:
    """The products of a dense layer whose weights are `outputs x inputs`."""
    return {
        "forward": Case(rows, inputs, outputs, turn_y=True),
        "input": Case(rows, outputs, inputs),
        "weight": Case(outputs, rows, inputs, turn_x=True),
    }


KINDS = "forward", "input", "weight"
NETWORKS: dict[str, list[tuple[int, int, int, int]]] = {  # times, rows, inputs, outputs
    "alexnet": [(1, 32, 9216, 4096), (1, 32, 4096, 4096), (1, 32, 4096, 1000)],
    "vgg19": [(1, 4, 25088, 4096), (1, 4, 4096, 4096), (1, 4, 4096, 1000)],
    "resnet50": [(1, 16, 2048, 1000)],
    "mobilenet": [(1, 16, 1024, 1000)],
    "gnmt": [(5, 400, 1024, 4096), (4, 400, 2048, 4096), (3, 400, 1024, 1024),
             (1, 400, 1024, 32000)],
    "ncf": [(1, 16384, 256, 256), (1, 16384, 256, 128), (1, 16384, 128, 64)],
    "perceptron": [(1, 128, 784, 512), (1, 128, 512, 512), (1, 128, 512, 10)],
    "decoder": [(6, 2048, 384, 1152), (6, 2048, 384, 384), (6, 2048, 384, 1536),
                (6, 2048, 1536, 384), (1, 2048, 384, 96)],
}  # fmt: skip
OTHERS = {
    "cube 512": Case(512, 512, 512),
    "cube 1024": Case(1024, 1024, 1024),
    "cube 2048": Case(2048, 2048, 2048),
    "cube float64": Case(1024, 1024, 1024, dtype="float64"),
    "thin": Case(4096, 64, 4096),
    "vector": Case(1, 4096, 4096),
    "vector turned": Case(1, 4096, 4096, turn_y=True),
}


def measure(
    names: Sequence[str] = (), kinds: Sequence[str] = KINDS, threads: int = 2, rounds: int = 4
) -> None:
    """Measure and print the products whose network's or own name begins so."""
    cases = [
        (network, times, kind, case)
        for network, layers in NETWORKS.items()
        for times, *sizes in layers
        for kind, case in layer(*sizes).items()
    ] + [(name, 1, "forward", case) for name, case in OTHERS.items()]
    bench = Bench("bench.work.matmul_torch", threads, rounds)
    for group, times, kind, case in cases:
        if kind in kinds and wanted(names, (group, case.name)):
            of = group, times, case.name, kind
            bench.run(of, case.launches(), case.flops, **asdict(case))
    bench.report()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.matmul", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks, or products' names")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    measure(given.names, given.kind or KINDS, given.threads, given.rounds)


if __name__ == "__main__":
    main()
