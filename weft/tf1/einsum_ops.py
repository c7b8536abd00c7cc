"""Sums of products over any axes: `tensordot` and `einsum`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ops
from weft.errors import GraphError
from weft.tf1.convert import convert_n_to_tensor, same_type
from weft.tf1.graph import fail, get_default_graph, name_scope
from weft.tf1.shaping import dimension
from weft.tf1.tensor import Tensor


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products over `axes`: a count, or a pair of lists of axes."""
    with name_scope(name, "Tensordot", [a, b]):
        x, y = same_type("tensordot", a, b)
        left, right = _contracted(x, y, axes)

        def build(u: Any, v: Any) -> Any:
            return _tensordot(u, v, left, right)

        return get_default_graph().emit("MatMul", [x, y], build, name="MatMul").outputs[0]


def _contracted(x: Tensor, y: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    p, q = len(x.shape), len(y.shape)
    if isinstance(axes, int):
        return list(range(p - axes, p)), list(range(axes))
    left, right = axes
    left = [left] if isinstance(left, int) else list(left)
    right = [right] if isinstance(right, int) else list(right)
    return [i % p for i in left], [i % q for i in right]


def _size(dims: Sequence[Any]) -> Any:
    total: Any = 1
    for d in dims:
        total = d if isinstance(total, int) and total == 1 else total * d
    return total


def _tensordot(x: Any, y: Any, left: list[int], right: list[int]) -> Any:
    free_x = [i for i in range(x.rank) if i not in left]
    free_y = [i for i in range(y.rank) if i not in right]
    rows = [dimension(x, i) for i in free_x]
    columns = [dimension(y, i) for i in free_y]
    inner = _size([dimension(x, i) for i in left])
    a = ops.reshape(ops.transpose(x, perm=(*free_x, *left)), shape=[_size(rows), inner])
    b = ops.reshape(ops.transpose(y, perm=(*right, *free_y)), shape=[inner, _size(columns)])
    return ops.reshape(ops.matmul(a, b), shape=[*rows, *columns])


def einsum(equation: str, *inputs: Any, name: str | None = None) -> Tensor:
    """Sums of products by Einstein's convention, such as `'bij,bjk->bik'`.

    Raises:
        GraphError: a malformed equation, or one with `...` or a repeated letter in an operand.
    """
    with name_scope(name, "einsum", list(inputs)):
        tensors = convert_n_to_tensor(inputs, name="inputs")
        terms, result = _parsed(equation, tensors)

        def build(*values: Any) -> Any:
            total, letters = values[0], terms[0]
            for position in range(1, len(values)):
                later = set("".join(terms[position + 1 :])) | set(result)
                total, letters = _contract(total, letters, values[position], terms[position], later)
            return _summed_to(total, letters, result)

        graph = get_default_graph()
        attrs = {"equation": equation}
        return graph.emit("Einsum", tensors, build, name="Einsum", attrs=attrs).outputs[0]


def _parsed(equation: str, tensors: Sequence[Tensor]) -> tuple[list[str], str]:
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        counts = {c: left.count(c) for c in sorted(left) if c.isalpha()}
        result = "".join(c for c, count in counts.items() if count == 1)
    ranks = [t.shape.ndims for t in tensors]
    fits = len(terms) == len(tensors) and all(
        term.isalpha() and len(set(term)) == len(term) and rank in (None, len(term))
        for term, rank in zip(terms, ranks, strict=False)
    )
    if not fits or not set(result) <= set(left):
        raise fail(GraphError, f"einsum: expected an equation for ranks {ranks}, got {equation!r}")
    return terms, result


def _contract(x: Any, xs: str, y: Any, ys: str, later: set[str]) -> tuple[Any, str]:
    """The product of two operands, summed over letters that neither `later` has."""
    x, xs = _without(x, xs, [c for c in xs if c not in ys and c not in later])
    y, ys = _without(y, ys, [c for c in ys if c not in xs and c not in later])
    batch = [c for c in xs if c in ys and c in later]
    inner = [c for c in xs if c in ys and c not in later]
    rows, columns = [c for c in xs if c not in ys], [c for c in ys if c not in xs]
    a = ops.transpose(x, perm=tuple(xs.index(c) for c in (*batch, *rows, *inner)))
    b = ops.transpose(y, perm=tuple(ys.index(c) for c in (*batch, *inner, *columns)))
    size = {c: dimension(x, i) for i, c in enumerate(xs)} | {
        c: dimension(y, i) for i, c in enumerate(ys)
    }
    lead = [size[c] for c in batch]
    count = _size([size[c] for c in inner])
    a = ops.reshape(a, shape=[*lead, _size([size[c] for c in rows]), count])
    b = ops.reshape(b, shape=[*lead, count, _size([size[c] for c in columns])])
    letters = [*batch, *rows, *columns]
    product = ops.reshape(ops.matmul(a, b), shape=[size[c] for c in letters])
    return product, "".join(letters)


def _without(x: Any, letters: str, gone: Sequence[str]) -> tuple[Any, str]:
    if not gone:
        return x, letters
    summed = ops.sum(x, axes=tuple(letters.index(c) for c in gone))
    return summed, "".join(c for c in letters if c not in gone)


def _summed_to(x: Any, letters: str, result: str) -> Any:
    x, letters = _without(x, letters, [c for c in letters if c not in result])
    return ops.transpose(x, perm=tuple(letters.index(c) for c in result))
