"""A matmul as sizes and strides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from weft.ir.dtype import DType, float32
from weft.ir.extent import same
from weft.ir.node import Node
from weft.ir.shape import known

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Product:
    """`out[g, i, j] = sum over k of x[g, i, k] * y[g, k, j]`, strides in elements.

    `g` runs over `batch`; a batch stride of 0 is a broadcast operand. The output is contiguous.
    With `pairs`, a step of k is two bfloat16, counted as one float32; an operand in which they are
    not adjacent is interleaved when packed, and its strides count bfloat16. If k is `odd`, zero
    follows the last one, both operands are packed, and all strides count bfloat16. The batch's last
    matmul has only `last` steps of k, if not 0.
    """

    m: int
    n: int
    k: int
    x_row: int
    x_step: int
    y_step: int
    y_column: int
    dtype: DType
    batch: Dims = ()
    x_batch: Dims = ()
    y_batch: Dims = ()
    pairs: bool = False
    x_woven: bool = False
    y_woven: bool = False
    odd: bool = False
    last: int = 0

    @property
    def count(self) -> int:
        """Matmuls in the batch."""
        return prod(self.batch)

    @property
    def together(self) -> int:
        """Rows that meet one matrix y."""
        return self.m if any(self.y_batch) else self.m * self.count

    @property
    def sizes(self) -> tuple[int, int, int]:
        """m, n and k."""
        return self.m, self.n, self.k

    @property
    def depth(self) -> int:
        """Elements that each sum takes from either operand."""
        return self.k * 2 - self.odd if self.pairs else self.k

    @property
    def flops(self) -> float:
        """Additions and multiplications."""
        return 2.0 * self.count * self.m * self.n * self.depth

    @property
    def bytes(self) -> float:
        """Memory that must move at least once."""
        return float(self.moved)

    @property
    def moved(self) -> int:
        """`bytes` as an integer."""
        moved = self.m * self.k + self.k * self.n + self.m * self.n
        return self.count * moved * self.dtype.size

    @property
    def accumulator(self) -> DType:
        """The type of the sums: float32 for half precision."""
        return float32 if self.dtype.is_floating and self.dtype.size < 4 else self.dtype

    def swapped(self) -> Product:
        """The transposed matmul: the output's columns are its rows."""
        return replace(
            self, m=self.n, n=self.m,
            x_row=self.y_column, x_step=self.y_step, y_step=self.x_step, y_column=self.x_row,
            x_batch=self.y_batch, y_batch=self.x_batch,
        )  # fmt: skip

    def paired(self) -> Product:
        """The same matmul of bfloat16, two steps of k at a time."""
        x_woven, y_woven, odd = self.x_transposed, not self.y_transposed, self.k % 2 == 1
        row, column = self.x_row, self.y_column
        return replace(
            self, k=(self.k + 1) // 2, dtype=float32, pairs=True, x_woven=x_woven,
            y_woven=y_woven, odd=odd, last=self.last // 2,
            x_row=row if x_woven or odd else row // 2,
            x_step=self.x_step * 2 if x_woven or odd else 1,
            y_step=self.y_step * 2 if y_woven or odd else 1,
            y_column=column if y_woven or odd else column // 2,
        )  # fmt: skip

    def planned(self) -> Product:
        """The matmul of the planned sizes, for which a tile may be chosen if it holds for all."""
        return replace(self, m=int(self.m), n=int(self.n), k=int(self.k))

    @property
    def element(self) -> int:
        """Bytes of one element of an operand."""
        return 2 if self.pairs else self.dtype.size

    @property
    def x_size(self) -> int:
        """Bytes of the elements that the strides of x count."""
        return 2 if self.x_woven or self.odd else self.dtype.size

    @property
    def y_size(self) -> int:
        """Bytes of the elements that the strides of y count."""
        return 2 if self.y_woven or self.odd else self.dtype.size

    @property
    def label(self) -> str:
        """For kernel names: `f32_128x784x512` (m, k, n), `t` after a transposed operand."""
        sizes = f"{self.m}{'t' * self.x_transposed}x{self.depth}x{self.n}{'t' * self.y_transposed}"
        batch = f"{self.count}x" if self.count != 1 else ""
        return f"{'pairs' if self.pairs else self.dtype}_{batch}{sizes}"

    @property
    def x_transposed(self) -> bool:
        """Whether x is contiguous along rows, not along k."""
        return self.x_woven if self.pairs else not same(self.x_step, 1)

    @property
    def y_transposed(self) -> bool:
        """Whether y is contiguous along k, not along columns."""
        return not same(self.y_column, 1)


def product_of(node: Node) -> Product:
    """The matmul that a `matmul` node of concrete shape computes."""
    x, y = (known(value.shape) for value in node.data_inputs)
    out = known(node.outputs[0].shape)
    x_turned, y_turned = bool(node.attrs["transpose_x"]), bool(node.attrs["transpose_y"])
    m, k = x[-2:][::-1] if x_turned else x[-2:]
    n = y[-2] if y_turned else y[-1]
    batch = out[:-2]
    x_turned = x_turned and m != 1
    if not x_turned and prod(y[:-2]) == 1 and x[:-2] == batch:
        m, batch = m * prod(batch), ()  # one y for all: the batch is more rows
    axes = [axis for axis, size in enumerate(batch) if size != 1]
    kept = tuple(batch[axis] for axis in axes)
    return Product(
        m, n, k,
        x_row=1 if x_turned else k,
        x_step=m if x_turned else 1,
        y_step=1 if y_turned else n,
        y_column=k if y_turned and n != 1 else 1,
        dtype=node.data_inputs[0].dtype,
        batch=kept,
        x_batch=_strides(x[:-2], len(batch), axes, m * k),
        y_batch=_strides(y[:-2], len(batch), axes, k * n),
    )  # fmt: skip


def _strides(own: Dims, rank: int, axes: list[int], matrix: int) -> Dims:
    """Strides of an operand over the kept batch axes; 0 where it is broadcast."""
    padded = (1,) * (rank - len(own)) + own
    return tuple(0 if padded[axis] == 1 else matrix * prod(padded[axis + 1 :]) for axis in axes)
