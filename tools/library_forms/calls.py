"""Calls that many programs make: on the usual dtypes and ranks, with their gradients.

A program is a function that makes calls and yields what is to be computed. Sizes are all different:
they stand for any others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import weft as wf
from weft.nn import functional as F

SHAPES = ((19,), (19, 37), (5, 19, 37), (3, 5, 19, 37))
FLOATS = ("float32", "float64", "bfloat16")
INTEGERS = ("int64", "int32")
UNARY = (
    "abs acos asin atan ceil cos cosh erf exp expm1 floor log log1p log2 neg reciprocal relu round "
    "rsqrt sigmoid sign sin sinh sqrt square tan tanh isnan isinf isfinite"
).split()
ACTIVATIONS = (
    "elu gelu hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 selu silu softplus "
    "softsign"
).split()
BINARY = "add sub mul div pow maximum minimum".split()
COMPARISONS = "eq ne lt le gt ge".split()
WHOLE = "add sub mul floor_divide remainder maximum minimum".split()
LOGICAL = "logical_and logical_or logical_xor".split()
REDUCTIONS = "sum mean amax amin prod".split()
NORMS = "var std".split()
Values = Iterator[Any]


def filled(shape: tuple[int, ...], dtype: str, grad: bool = False) -> wf.Tensor:
    """A tensor whose elements suit every function."""
    count = 1
    for size in shape:
        count *= size
    x = (wf.arange(count) % 7 + 1).to(getattr(wf, dtype)) / (8 if dtype in FLOATS else 1)
    x = x.to(getattr(wf, dtype)).reshape(shape)
    return x.requires_grad_() if grad else x


def pulled(function: Callable[..., Any], *xs: wf.Tensor) -> Values:
    """A function's result and its gradients."""
    y = function(*xs)
    yield y
    own = [x for x in xs if x.requires_grad]
    if own and y.requires_grad:
        yield from wf.autograd.grad(y, own, wf.ones_like(y), allow_unused=True)


def elementwise() -> Values:
    """Functions of one tensor; their gradients in float32."""
    for shape in SHAPES:
        for dtype in FLOATS:
            for name in UNARY if dtype != "float64" or len(shape) < 3 else ():
                yield getattr(wf, name)(filled(shape, dtype))
        for name in UNARY[:25]:
            yield from pulled(getattr(wf, name), filled(shape, "float32", True))
        for name in ACTIVATIONS:
            yield from pulled(getattr(F, name), filled(shape, "float32", True))
        for dtype in INTEGERS:
            for name in ("abs", "neg", "sign", "square"):
                yield getattr(wf, name)(filled(shape, dtype))
        yield filled(shape, "int64").bool().logical_not()
        yield from pulled(lambda x: x.clamp(0.1, 0.9), filled(shape, "float32", True))
        yield filled(shape, "float32").clamp(min=0.1)
        yield filled(shape, "float32").clamp(max=0.9)


def _partners(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """What a tensor meets: its like, a number, a row, a column, one of each image's channel."""
    yield shape
    yield ()
    if len(shape) > 1:
        yield shape[-1:]
        yield (*shape[:-1], 1)
    if len(shape) > 2:
        yield (1, *shape[1:])
        yield shape[1:]
    if len(shape) == 4:
        yield (shape[1], 1, 1)
        yield (shape[0], 1, 1, shape[3])


def binary() -> Values:
    """Functions of two tensors, also of a tensor and a number."""
    for shape in SHAPES:
        for other in _partners(shape):
            for dtype in FLOATS:
                for name in BINARY[: 4 if dtype != "float32" else None]:
                    yield getattr(wf, name)(filled(shape, dtype), filled(other, dtype))
                    if other != shape:
                        yield getattr(wf, name)(filled(other, dtype), filled(shape, dtype))
            for name in BINARY:
                pair = filled(shape, "float32", True), filled(other, "float32", True)
                yield from pulled(getattr(wf, name), *pair)
                if other != shape:
                    yield from pulled(getattr(wf, name), *pair[::-1])
            for dtype in INTEGERS[: 1 if other not in (shape, ()) else 2]:
                for name in WHOLE:
                    yield getattr(wf, name)(filled(shape, dtype), filled(other, dtype))
            for dtype in ("float32", "int64"):
                for name in COMPARISONS:
                    yield getattr(wf, name)(filled(shape, dtype), filled(other, dtype))
            for name in LOGICAL:
                yield getattr(wf, name)(filled(shape, "int64") > 1, filled(other, "int64") > 2)
            mask = filled(shape, "int64") > 2
            pair = filled(shape, "float32", True), filled(other, "float32", True)
            yield from pulled(lambda x, y, mask=mask: wf.where(mask, x, y), *pair)
        x, mask = filled(shape, "float32", True), filled(shape, "int64") > 2
        yield from pulled(lambda x, mask=mask: x.masked_fill(mask, -1.0), x)
        for number in (2, 0.5, 3):
            yield from pulled(lambda x, number=number: x**number, filled(shape, "float32", True))
        for name in ("add", "sub", "mul", "div"):
            yield from pulled(lambda x, n=name: getattr(wf, n)(x, 2.0), x)


def casts() -> Values:
    """Every dtype as every other one."""
    kinds = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool")
    for shape in SHAPES:
        for a in kinds:
            for b in kinds if len(shape) < 3 else ("float32",):
                if a != b:
                    yield filled(shape, "int64").to(getattr(wf, a)).to(getattr(wf, b))


def _axes(rank: int) -> Iterator[tuple[int, ...]]:
    yield tuple(range(rank))
    for i in range(rank):
        yield (i,)
    if rank > 2:
        yield tuple(range(rank - 1))
        yield (rank - 2, rank - 1)
    if rank == 4:
        yield (0, 2, 3)


def reductions() -> Values:
    """Sums and others, over all and over each axis; positions; sorted order."""
    for shape in SHAPES:
        for axes in dict.fromkeys(_axes(len(shape))):
            for keep in (False, True):
                for name in REDUCTIONS[:4]:
                    x = filled(shape, "float32", True)
                    yield from pulled(lambda x, n=name, a=axes, k=keep: getattr(wf, n)(x, a, k), x)
                for name in NORMS:
                    x = filled(shape, "float32", True)
                    yield from pulled(
                        lambda x, n=name, a=axes, k=keep: getattr(x, n)(a, keepdim=k), x
                    )
                yield wf.sum(filled(shape, "float64"), axes, keep)
                yield wf.sum(filled(shape, "int64"), axes, keep)
                yield wf.mean(filled(shape, "bfloat16"), axes, keep)
                yield wf.sum(filled(shape, "int64") > 2, axes, keep)
            yield from pulled(lambda x, a=axes: wf.logsumexp(x, a), filled(shape, "float32", True))
        for axis in range(len(shape)):
            x = filled(shape, "float32", True)
            yield from pulled(lambda x, a=axis: x.softmax(a), x)
            yield from pulled(lambda x, a=axis: x.log_softmax(a), x)
            yield from pulled(lambda x, a=axis: x.cumsum(a), x)
            yield x.argmax(axis)
            yield x.argmin(axis)
            yield x.argmax(axis, keepdim=True)
            yield from x.max(axis)
            yield from x.min(axis)
            yield from pulled(lambda x, a=axis: x.norm(dim=a), x)
            yield (filled(shape, "int64") > 2).any(axis)
            yield (filled(shape, "int64") > 2).all(axis)
        yield from filled(shape, "float32").sort(-1)
        yield filled(shape, "float32").argsort(-1)
        yield from filled(shape, "float32").topk(3, -1)
        yield filled(shape, "float32").argmax()
        yield from pulled(lambda x: x.norm(), filled(shape, "float32", True))
        yield (filled(shape, "int64") > 2).any()
        yield (filled(shape, "int64") > 2).all()
        yield filled(shape, "float32").max()
        yield filled(shape, "float32").min()
        yield wf.allclose(filled(shape, "float32"), filled(shape, "float32"))


def products() -> Values:
    """Matrix products of all forms: small, large, square, with one row, batched."""
    for dtype in ("float32", "float64", "bfloat16"):
        for m, k, n in (
            (1000, 1000, 1000), (512, 384, 256), (64, 48, 80), (17, 23, 29), (1, 384, 512),
            (3, 5, 2), (128, 784, 10), (2048, 64, 64), (64, 2048, 96), (1, 8, 3), (100, 1, 50),
        ):  # fmt: skip
            grad = dtype == "float32"
            x, y = filled((m, k), dtype, grad), filled((k, n), dtype, grad)
            yield from pulled(lambda x, y: x @ y, x, y)
            yield from pulled(F.linear, x, filled((n, k), dtype, grad))
            yield from pulled(F.linear, x, filled((n, k), dtype, grad), filled((n,), dtype, grad))
            yield x @ filled((k,), dtype)
            yield x.T @ filled((m, n), dtype)
            yield x @ x.T
    for b, h, m, k, n in ((5, 1, 19, 37, 23), (4, 6, 64, 32, 48)):
        for lead in ((b,), (b, h)):
            x, y = filled((*lead, m, k), "float32", True), filled((*lead, k, n), "float32", True)
            yield from pulled(lambda x, y: x @ y, x, y)
            yield from pulled(lambda x, y: x @ y.transpose(-1, -2), x, y.transpose(-1, -2))
            yield from pulled(lambda x, y: x @ y, x, filled((k, n), "float32", True))
        x = filled((b, m, k), "float32", True)
        yield from pulled(F.linear, x, filled((n, k), "float32", True))
        weight, bias = filled((n, k), "float32", True), filled((n,), "float32", True)
        yield from pulled(F.linear, x, weight, bias)
        yield from pulled(F.linear, filled((b, h, m, k), "float32", True), weight, bias)
    for n in (64, 1000):
        x, y = filled((n,), "float32", True), filled((n,), "float32", True)
        yield from pulled(lambda x, y: x @ y, x, y)
        yield from pulled(wf.outer, x, y)


def movement() -> Values:
    """Parts, permutations, joints."""
    for dtype in ("float32", "int64"):
        grad = dtype == "float32"
        for shape in SHAPES:
            rank = len(shape)
            x = filled(shape, dtype, grad)
            for axis in range(rank):
                yield from pulled(lambda x, a=axis: wf.cat([x, x * 1], a), x)
                yield wf.cat([x, x, x], axis)
                yield from pulled(lambda x, a=axis: wf.stack([x, x * 1], a), x)
                yield from pulled(lambda x, a=axis: x.select(a, 2), x)
                yield x.select(axis, -1)
                yield from pulled(lambda x, a=axis: x.narrow(a, 1, 2), x)
                yield x.narrow(axis, 0, 2)
                yield from pulled(lambda x, a=axis: x.flip(a), x)
                yield x.roll(1, axis)
                index = wf.arange(2)
                yield from pulled(lambda x, a=axis, i=index: x.index_select(a, i), x)
            for a in range(rank):
                for b in range(a + 1, rank):
                    yield from pulled(lambda x, a=a, b=b: x.transpose(a, b) * 1, x)
            yield from pulled(lambda x, r=rank: x.permute(*range(1, r), 0) * 1, x)
            yield from pulled(lambda x: F.pad(x, (1, 2)), x)
            yield from pulled(lambda x, s=shape: x.expand(2, *s) * 1, x)
            yield x[wf.arange(2)]
            yield x[::2] * 1
            yield x.repeat(*[2] * rank)
        for rank in (1, 2):
            for size in ((37, 19), (19, 37, 5)):
                x, index = filled(size, dtype, grad), wf.arange(6).reshape((6,) if rank == 1 else (3, 2))
                yield from pulled(lambda x, i=index: F.embedding(i, x), x)
        x, index = filled((19, 37), dtype, grad), wf.zeros(19, 1, dtype=wf.int64)
        yield from pulled(lambda x, i=index: x.gather(1, i), x)
        yield wf.triu(filled((19, 37), dtype))
        yield wf.tril(filled((19, 37), dtype))
    for dtype in ("float32", "int64", "bool"):
        for shape in SHAPES:
            yield wf.zeros(shape, dtype=getattr(wf, dtype))
            yield wf.full(shape, 2, dtype=getattr(wf, dtype))
    for n in (19, 37):
        yield wf.arange(n)
        yield wf.arange(float(n))
        yield wf.linspace(0, 1, n)
        yield wf.eye(n)
        yield F.one_hot(wf.arange(n) % 5, 5)


def chance() -> Values:
    """Random numbers."""
    for shape in SHAPES:
        yield wf.rand(*shape)
        yield wf.randn(*shape)
        yield wf.randint(0, 9, shape)
        yield wf.empty(shape).uniform_(-1, 1)
        yield wf.empty(shape).normal_(0, 2)
        yield wf.bernoulli(wf.full(shape, 0.5))
        for p in (0.1, 0.2, 0.5):
            yield from pulled(lambda x, p=p: F.dropout(x, p, True), filled(shape, "float32", True))
    yield wf.randperm(37)
    yield wf.multinomial(filled((5, 19), "float32"), 1)
    yield wf.multinomial(filled((19,), "float32"), 1)


def layers() -> Values:
    """Convolutions, pooling, norms, attention, losses."""
    image = filled((4, 16, 28, 28), "float32", True)
    for kernel, stride, padding in ((1, 1, 0), (3, 1, 1), (3, 2, 1), (5, 1, 2), (4, 2, 1)):
        weight, bias = filled((24, 16, kernel, kernel), "float32", True), filled((24,), "float32", True)
        yield from pulled(lambda *v, s=stride, p=padding: F.conv2d(*v, None, s, p), image, weight)
        yield from pulled(lambda *v, s=stride, p=padding: F.conv2d(*v, s, p), image, weight, bias)
    for channels, size, kernel in ((1, 28, 3), (1, 28, 5), (3, 32, 3), (3, 32, 5)):
        x = filled((4, channels, size, size), "float32", True)
        weight, bias = filled((24, channels, kernel, kernel), "float32", True), filled((24,), "float32", True)
        yield from pulled(lambda *v: F.conv2d(*v), x, weight, bias)
        yield from pulled(lambda *v, k=kernel: F.conv2d(*v, 1, k // 2), x, weight, bias)
    text = filled((4, 16, 50), "float32", True)
    yield from pulled(F.conv1d, text, filled((24, 16, 3), "float32", True), filled((24,), "float32", True))
    weight = filled((16, 24, 4, 4), "float32", True)
    yield from pulled(lambda *v: F.conv_transpose2d(*v, stride=2, padding=1), image, weight)
    for size, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 2, 0)):
        yield from pulled(lambda x, *a: F.max_pool2d(x, *a), image) if False else pulled(
            lambda x, k=size, s=stride, p=padding: F.max_pool2d(x, k, s, p), image
        )
        yield from pulled(lambda x, k=size, s=stride: F.avg_pool2d(x, k, s), image)
    yield from pulled(lambda x: F.adaptive_avg_pool2d(x, 1), image)
    for shape in SHAPES[1:]:
        x, w, b = (filled(s, "float32", True) for s in (shape, shape[-1:], shape[-1:]))
        yield from pulled(lambda x, w, b: F.layer_norm(x, w.shape, w, b), x, w, b)
        yield from pulled(lambda x, w: F.rms_norm(x, w.shape, w), x, w)
    for shape in (SHAPES[1], SHAPES[3]):
        x, w, b = (filled(s, "float32", True) for s in (shape, shape[1:2], shape[1:2]))
        mean, var = wf.zeros(shape[1]), wf.ones(shape[1])
        for training in (True, False):
            yield from pulled(
                lambda x, w, b, t=training, m=mean, v=var: F.batch_norm(x, m, v, w, b, t), x, w, b
            )
    x, w, b = (filled(s, "float32", True) for s in ((3, 6, 19, 37), (6,), (6,)))
    yield from pulled(lambda x, w, b: F.group_norm(x, 3, w, b), x, w, b)
    for causal in (False, True):
        for size in (16, 32, 64):
            qkv = [filled((2, 3, 19, size), "float32", True) for _ in range(3)]
            yield from pulled(
                lambda *v, c=causal: F.scaled_dot_product_attention(*v, is_causal=c), *qkv
            )
    for reduction in ("mean", "sum", "none"):
        for shape in SHAPES[:3]:
            x, y = filled(shape, "float32", True), filled(shape, "float32")
            for name in ("mse_loss", "l1_loss", "smooth_l1_loss"):
                yield from pulled(
                    lambda x, n=name, y=y, r=reduction: getattr(F, n)(x, y, reduction=r), x
                )
            for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits"):
                yield from pulled(
                    lambda x, n=name, y=y, r=reduction: getattr(F, n)(x, y, reduction=r), x
                )
        x, y = filled((19, 37), "float32", True), wf.arange(19)
        yield from pulled(lambda x, y=y, r=reduction: F.cross_entropy(x, y, reduction=r), x)
        yield from pulled(lambda x, y=y, r=reduction: F.nll_loss(x, y, reduction=r), x)


PROGRAMS = (
    elementwise, binary, casts, reductions, products, movement, chance, layers,
)  # fmt: skip
