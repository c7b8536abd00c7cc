"""`einsum` as matmuls in an optimized order."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from weft.errors import GraphError, ShapeError
from weft.ir.dtype import bfloat16, float16, float32, float64, int32, int64
from weft.ir.node import Value, at_user_line
from weft.ops.declaration import catalogue
from weft.ops.shape.diagonal import diagonal
from weft.ops.shape.reshape import dimension

__all__ = ["einsum", "tensordot"]

EXHAUSTIVE: Final = 7  # operands, up to which all orders are compared: some 1000 pairs of subsets
MATMUL: Final = (float32, float64, float16, bfloat16, int32, int64)  # of `matmul`


@dataclass(frozen=True)
class Term:
    """An array with a letter for each axis."""

    value: Value
    letters: str

    def sizes(self) -> dict[str, Any]:
        """The size of each letter: a number if known, otherwise the value that computes it."""
        return {c: dimension(self.value, i) for i, c in enumerate(self.letters)}

    def ordered(self, letters: Sequence[str]) -> Value:
        """The array with its axes permuted."""
        perm = tuple(self.letters.index(c) for c in letters)
        straight = perm == tuple(range(len(perm)))
        return self.value if straight else catalogue.transpose(self.value, perm=perm)

    def without(self, gone: Sequence[str]) -> Term:
        """The sum over some letters."""
        if not gone:
            return self
        axes = tuple(self.letters.index(c) for c in gone)
        summed = catalogue.sum(self.value, axes=axes)
        return Term(summed, "".join(c for c in self.letters if c not in gone))


def einsum(spec: str, *xs: Value) -> Value:
    """Einstein summation, such as `'bij,bjk->bik'` or `'...ii->...i'`.

    Letters missing in the result are summed over; a repeated letter in an operand takes its
    diagonal; without `->` the result has the letters that occur once, sorted. Dimensions of 1
    broadcast. Up to seven operands are contracted in the cheapest order.

    Raises:
        GraphError: a malformed specification, or one that does not fit the operands' ranks.
        ShapeError: a letter with two sizes.
    """
    inputs, result = _parsed(spec, xs)
    terms = [_distinct(Term(x, letters)) for x, letters in zip(xs, inputs, strict=True)]
    sizes = _sizes(spec, terms)
    terms = [_narrow(term, sizes) for term in terms]
    total = _contracted(terms, result, sizes)
    total = total.without([c for c in total.letters if c not in result])
    missing = [c for c in result if c not in total.letters]  # broadcast: of size 1 everywhere
    for c in missing:
        wide = catalogue.expand_dims(total.value, axis=0)
        total = Term(wide, c + total.letters)
    return total.ordered(result)


def tensordot(x: Value, y: Value, axes: Any = 2) -> Value:
    """The sum of products over `axes`: a number of adjacent axes, or two lists, as in NumPy.

    Raises:
        GraphError: lists of different lengths.
        ShapeError: axes outside the rank, or of different sizes; ranks must be known.
    """
    if x.rank is None or y.rank is None:
        raise ShapeError.here(f"tensordot: expected known ranks, got {x!r} and {y!r}")
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.rank, y.rank):
            raise ShapeError.here(
                f"tensordot: expected 0 to {min(x.rank, y.rank)} axes of ranks {x.rank} and "
                f"{y.rank}, got {axes}"
            )
        left, right = list(range(x.rank - axes, x.rank)), list(range(axes))
    else:
        left, right = ([a] if isinstance(a, int) else list(a) for a in axes)
    if len(left) != len(right) or any(not -x.rank <= a < x.rank for a in left):
        raise GraphError.here(
            f"tensordot: expected as many axes of x as of y, got {left} and {right}"
        )
    for a, b in zip(left, right, strict=True):
        p, q = dimension(x, a), dimension(y, b)
        if isinstance(p, int) and isinstance(q, int) and p != q:
            raise ShapeError.here(
                f"tensordot: expected x.shape[{a}] == y.shape[{b}], got {p} and {q}"
            )
    symbols = [chr(_PRIVATE + i) for i in range(x.rank + y.rank)]
    first, second = symbols[: x.rank], symbols[x.rank :]
    for a, b in zip(left, right, strict=True):
        second[b] = first[a]
    rest = [c for i, c in enumerate(first) if i not in {a % x.rank for a in left}]
    rest += [c for c in second if c not in first]
    terms = [Term(x, "".join(first)), Term(y, "".join(second))]
    sizes = _sizes("tensordot", terms)
    return _contracted(terms, "".join(rest), sizes).ordered(rest)


# The specification

_PRIVATE: Final = 0xE000  # letters of Unicode's private area stand for the axes of an ellipsis


def _parsed(spec: str, xs: Sequence[Value]) -> tuple[list[str], str]:
    """Letters of the operands and of the result, including those for ellipses."""
    left, arrow, right = spec.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise _malformed(spec, xs, f"{len(terms)} operands, got {len(xs)}")
    found = [_spelled(spec, xs, term, x.rank) for term, x in zip(terms, xs, strict=True)]
    dots = max((t for t in map(_dots, found)), key=len, default="")
    if arrow:
        result = right.replace("...", dots)
    else:
        every = "".join(t for t in found)
        once = [c for c in sorted(set(every)) if every.count(c) == 1 and c < chr(_PRIVATE)]
        result = dots + "".join(once)
    known = set("".join(found))
    if not _plain(right.replace("...", "", 1)) or len(set(result)) != len(result):
        raise _malformed(spec, xs, "a result of different letters")
    if not set(result) <= known:
        raise _malformed(spec, xs, "a result of letters that the operands have")
    return found, result


def _spelled(spec: str, xs: Sequence[Value], term: str, rank: int | None) -> str:
    named = term.replace("...", "", 1)
    if not _plain(named):
        raise _malformed(spec, xs, f"letters and at most one '...' in {term!r}")
    if named == term:
        if rank not in (None, len(term)):
            raise _malformed(spec, xs, f"an operand of rank {len(term)} for {term!r}, got {rank}")
        return term
    if rank is None or rank < len(named):
        at_least = f"an operand of known rank, at least {len(named)}, for {term!r}, got {rank}"
        raise _malformed(spec, xs, at_least)
    count = rank - len(named)
    # Ellipses are aligned at their ends, as in broadcasting.
    return term.replace("...", "".join(chr(_PRIVATE + i) for i in reversed(range(count))))


def _plain(letters: str) -> bool:
    return all(c.isascii() and c.isalpha() for c in letters)


def _dots(letters: str) -> str:
    return "".join(c for c in letters if c >= chr(_PRIVATE))


def _malformed(spec: str, xs: Sequence[Value], expected: str) -> GraphError:
    ranks = ", ".join(str(x.rank) for x in xs)
    return GraphError(
        f"einsum: expected {expected}; specification {spec!r}, operands of ranks {ranks}"
        + at_user_line()
    )


# Operands


def _distinct(term: Term) -> Term:
    """A term without repeated letters, by taking diagonals."""
    value, letters = term.value, term.letters
    for c in sorted(set(letters)):
        while letters.count(c) > 1:
            a = letters.index(c)
            b = letters.index(c, a + 1)
            sizes = dimension(value, a), dimension(value, b)
            if all([isinstance(size, int) for size in sizes]) and sizes[0] != sizes[1]:
                raise ShapeError.here(
                    f"einsum: expected one size of {c!r}, which an operand has twice, got "
                    f"{sizes[0]} and {sizes[1]}"
                )
            value = diagonal(value, 0, a, b)
            letters = letters[:a] + letters[a + 1 : b] + letters[b + 1 :] + c
    return Term(value, letters)


def _sizes(spec: str, terms: Sequence[Term]) -> dict[str, Any]:
    """The size of each letter, ignoring broadcast sizes of 1."""
    found: dict[str, Any] = {}
    for term in terms:
        for c, size in term.sizes().items():
            old = found.get(c, 1)
            if old == 1 or (isinstance(old, Value) and isinstance(size, int) and size != 1):
                found[c] = size
            elif isinstance(old, int) and isinstance(size, int) and size not in (1, old):
                name = "an axis of '...'" if c >= chr(_PRIVATE) else repr(c)
                raise ShapeError.here(
                    f"einsum: expected one size of {name} in {spec!r}, got {old} and {size}"
                )
    return found


def _narrow(term: Term, sizes: Mapping[str, Any]) -> Term:
    """A term without the axes of size 1 that broadcast."""
    wide = [c for c, size in term.sizes().items() if size == 1 and sizes[c] != 1]
    if not wide:
        return term
    axes = tuple(term.letters.index(c) for c in wide)
    rest = "".join(c for c in term.letters if c not in wide)
    return Term(catalogue.squeeze(term.value, axes=axes), rest)


# Contraction

Tree = int | tuple["Tree", "Tree"]
"""A contraction tree: the number of a term, or the product of two trees."""


def _contracted(terms: Sequence[Term], result: str, sizes: Mapping[str, Any]) -> Term:
    """The product of all terms, pair by pair, summed over letters missing in the result."""
    known = {c: size if isinstance(size, int) else 1 for c, size in sizes.items()}
    tree = _order([set(t.letters) for t in terms], set(result), known)
    left = Counter("".join([*[t.letters for t in terms], result]))
    total = _evaluated(tree, terms, left)
    return total.without([c for c in total.letters if c not in result])


def _evaluated(tree: Tree, terms: Sequence[Term], left: Counter[str]) -> Term:
    """The product of a tree's terms; `left` counts the remaining uses of each letter."""
    if isinstance(tree, int):
        left.subtract(terms[tree].letters)
        return terms[tree]
    x = _evaluated(tree[0], terms, left)
    left.update(x.letters)
    y = _evaluated(tree[1], terms, left)
    left.subtract(x.letters)
    return _product(x, y, {c for c, count in left.items() if count})


def _order(sets: Sequence[set[str]], result: set[str], sizes: Mapping[str, int]) -> Tree:
    """The cheapest contraction tree; beyond `EXHAUSTIVE` terms, some are joined greedily first."""
    trees: list[Tree] = list(range(len(sets)))
    if len(trees) > EXHAUSTIVE:
        trees, sets = _equal_joined(sets)
    if len(trees) > EXHAUSTIVE:
        trees, sets = _cheap_joined(trees, sets, result, sizes)
    return _cheapest(trees, sets, result, sizes)


def _equal_joined(sets: Sequence[set[str]]) -> tuple[list[Tree], list[set[str]]]:
    """One tree for all terms with equal letters; and the letters of these trees."""
    groups: dict[frozenset[str], list[Tree]] = {}
    for i, letters in enumerate(sets):
        groups.setdefault(frozenset(letters), []).append(i)
    return list(map(_balanced, groups.values())), list(map(set, groups))


def _balanced(trees: Sequence[Tree]) -> Tree:
    half = len(trees) // 2
    return (_balanced(trees[:half]), _balanced(trees[half:])) if half else trees[0]


def _cheap_joined(
    trees: Sequence[Tree], sets: Sequence[set[str]], result: set[str], sizes: Mapping[str, int]
) -> tuple[list[Tree], list[set[str]]]:
    """Join the cheapest pairs until `EXHAUSTIVE` trees are left; and the letters of these."""
    parts = dict(enumerate(zip(trees, sets, strict=True)))
    uses = Counter([c for letters in [*sets, result] for c in letters])
    pairs = [(_work(a | b, sizes), i, j) for (i, a), (j, b) in combinations(enumerate(sets), 2)]
    heapq.heapify(pairs)
    new = len(parts)
    while len(parts) > EXHAUSTIVE:
        _, i, j = heapq.heappop(pairs)
        if i not in parts or j not in parts:
            continue
        (one, a), (other, b) = parts.pop(i), parts.pop(j)
        uses.subtract([*a, *b])
        kept = {c for c in a | b if uses[c]}
        uses.update(kept)
        for k, (_, letters) in parts.items():
            heapq.heappush(pairs, (_work(kept | letters, sizes), k, new))
        parts[new] = (one, other), kept
        new += 1
    return [tree for tree, _ in parts.values()], [letters for _, letters in parts.values()]


def _work(letters: set[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[c] for c in letters)


def _cheapest(
    trees: Sequence[Tree], letters: Sequence[set[str]], result: set[str], sizes: Mapping[str, int]
) -> Tree:
    """The cheapest split in two of each subset of terms; subsets are bit masks."""
    count = len(trees)
    best: dict[int, tuple[int, Tree]] = {1 << i: (0, tree) for i, tree in enumerate(trees)}

    def kept(subset: int) -> set[str]:
        inside = [letters[i] for i in range(count) if subset >> i & 1]
        outside = [letters[i] for i in range(count) if not subset >> i & 1]
        return set[str]().union(*inside) & result.union(*outside)

    for subset in range(1, 1 << count):
        part = (subset - 1) & subset
        while part:
            rest = subset - part
            if part > rest:
                work = _work(kept(part) | kept(rest), sizes)
                cost = best[part][0] + best[rest][0] + work
                if subset not in best or cost < best[subset][0]:
                    best[subset] = (cost, (best[part][1], best[rest][1]))
            part = (part - 1) & subset
    return best[(1 << count) - 1][1]


def _product(x: Term, y: Term, later: set[str]) -> Term:
    """The product of two terms, summed over letters missing in `later`."""
    x = x.without([c for c in x.letters if c not in y.letters and c not in later])
    y = y.without([c for c in y.letters if c not in x.letters and c not in later])
    batch = [c for c in x.letters if c in y.letters and c in later]
    inner = [c for c in x.letters if c in y.letters and c not in later]
    rows = [c for c in x.letters if c not in y.letters]
    columns = [c for c in y.letters if c not in x.letters]
    if not inner or x.value.dtype not in MATMUL:
        return _broadcast(x, y, (batch, rows, columns), inner)
    size = x.sizes() | y.sizes()
    turned_x = x.letters == "".join((*batch, *inner, *rows)) and bool(rows)
    turned_y = y.letters == "".join((*batch, *columns, *inner)) and bool(columns)
    left, right = (inner, rows) if turned_x else (rows, inner), (inner, columns)
    right = (columns, inner) if turned_y else right
    product = catalogue.matmul(
        _matrix(x, batch, left, size), _matrix(y, batch, right, size),
        transpose_x=turned_x, transpose_y=turned_y,
    )  # fmt: skip
    letters = [*batch, *rows, *columns]
    return Term(catalogue.reshape(product, shape=[size[c] for c in letters]), "".join(letters))


def _matrix(
    x: Term, batch: Sequence[str], axes: Sequence[Sequence[str]], size: Mapping[str, Any]
) -> Value:
    """The term as matrices: batch axes, then each group of axes flattened."""
    shape = [*[size[c] for c in batch], *[_size([size[c] for c in group]) for group in axes]]
    ordered = x.ordered([*batch, *axes[0], *axes[1]])
    return catalogue.reshape(ordered, shape=shape)


def _size(dims: Sequence[Any]) -> Any:
    total: Any = 1
    for d in dims:
        total = d if isinstance(total, int) and total == 1 else total * d
    return total


def _broadcast(
    x: Term, y: Term, axes: tuple[list[str], list[str], list[str]], inner: Sequence[str]
) -> Term:
    """The elementwise product, for terms without a common summed letter or a matmul."""
    batch, rows, columns = axes
    left, right = x.ordered([*batch, *rows, *inner]), y.ordered([*batch, *columns, *inner])
    for _ in columns:
        left = catalogue.expand_dims(left, axis=len(batch) + len(rows))
    for _ in rows:
        right = catalogue.expand_dims(right, axis=len(batch))
    product = Term(catalogue.multiply(left, right), "".join((*batch, *rows, *columns, *inner)))
    return product.without(inner)
