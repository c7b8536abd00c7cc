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
UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "floor",
    "log",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "isnan",
    "isinf",
    "isfinite",
]
ACTIVATIONS = [
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "relu6",
    "selu",
    "silu",
    "softplus",
    "softsign",
]
BINARY = ["add", "sub", "mul", "div", "pow", "maximum", "minimum"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
WHOLE = ["add", "sub", "mul", "floor_divide", "remainder", "maximum", "minimum"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
REDUCTIONS = ["sum", "mean", "amax", "amin", "prod"]
NORMS = ["var", "std"]
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
    for shape in ((), *SHAPES[:1]):
        for dtype in FLOATS:
            for name in UNARY:
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
    if shape:
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
    for shape in ((), *SHAPES):
        for place, other in enumerate(_partners(shape)):
            for turned in (False, True) if other != shape else (False,):
                shapes = (other, shape) if turned else (shape, other)
                yield from _pairs(shapes, place < 2)
        x, mask = filled(shape, "float32", True), filled(shape, "int64") > 2
        yield from pulled(lambda x, mask=mask: x.masked_fill(mask, -1.0), x)
        for number in (2, 0.5, 3):
            yield from pulled(lambda x, number=number: x**number, filled(shape, "float32", True))
        for name in BINARY[:4]:
            yield from pulled(lambda x, n=name: getattr(wf, n)(x, 2.0), x)


def _pairs(shapes: tuple[tuple[int, ...], tuple[int, ...]], all_kinds: bool) -> Values:
    """Functions of tensors of two shapes."""
    a, b = shapes
    for name in BINARY if all_kinds else BINARY[:4]:
        pair = filled(a, "float32", True), filled(b, "float32", True)
        yield from pulled(getattr(wf, name), *pair)
    for dtype in ("float64", "bfloat16", "int32") if all_kinds else ("bfloat16",):
        for name in BINARY[: 3 if dtype == "int32" else 4]:
            yield getattr(wf, name)(filled(a, dtype), filled(b, dtype))
    for name in WHOLE if all_kinds else WHOLE[:3]:
        yield getattr(wf, name)(filled(a, "int64"), filled(b, "int64"))
    for dtype in ("float32", "int64"):
        for name in COMPARISONS:
            yield getattr(wf, name)(filled(a, dtype), filled(b, dtype))
    for name in LOGICAL[: None if all_kinds else 2]:
        yield getattr(wf, name)(filled(a, "int64") > 1, filled(b, "int64") > 2)
    mask = filled(a, "int64") > 2
    pair = filled(a, "float32", True), filled(b, "float32", True)
    yield from pulled(lambda x, y: wf.where(mask, x, y), *pair)
    yield wf.where(filled(b, "int64") > 2, pair[0], pair[1])


def casts() -> Values:
    """Every dtype as every other one."""
    kinds = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool")
    for shape in ((), *SHAPES[:1]):
        for a in kinds:
            for b in kinds:
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
            for keep in (False, True) if axes == (len(shape) - 1,) else (False,):
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
    for m in range(2, 15):  # rows that are left over by a kernel's tiles
        x, weight, bias = filled((m, 64), "float32"), filled((80, 64), "float32"), wf.ones(80)
        yield x @ weight.T
        yield F.linear(x, weight)
        yield F.linear(x, weight, bias)
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
            yield from (x[0] * 1, x[-1] * 1, x[2] * 1, x[1:] * 1, x[:-1] * 1, x[1:3] * 1)
            yield from (x[..., 0] * 1, x[..., 1:] * 1, x[..., :-1] * 1)
            yield from ((x * 1)[(0,) * rank], (x * 1)[(-1,) * rank])
            yield (x * 1)[tuple(range(1, rank + 1))]
            yield x[::2] * 1
            yield x.repeat(*[2] * rank)
        for rank in (1, 2):
            x, index = filled((37, 19), dtype), wf.arange(6).reshape((6,) if rank == 1 else (3, 2))
            yield F.embedding(index, x)
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


def weights(*shape: int) -> tuple[wf.Tensor, wf.Tensor]:
    """A layer's weights and bias."""
    return filled(shape, "float32", True), filled(shape[:1], "float32", True)


def convolutions() -> Values:
    """Convolutions and pooling of images, from one channel, three, and more."""
    image = filled((4, 16, 28, 28), "float32", True)
    for kernel, stride, padding in ((1, 1, 0), (3, 1, 1), (3, 2, 1), (5, 1, 2), (4, 2, 1)):
        weight, bias = weights(24, 16, kernel, kernel)
        yield from pulled(lambda *v, s=stride, p=padding: F.conv2d(*v, None, s, p), image, weight)
        yield from pulled(lambda *v, s=stride, p=padding: F.conv2d(*v, s, p), image, weight, bias)
    for channels, size, kernel in ((1, 28, 3), (1, 28, 5), (3, 32, 3), (3, 32, 5)):
        x = filled((4, channels, size, size), "float32", True)
        values = x, *weights(24, channels, kernel, kernel)
        yield from pulled(F.conv2d, *values)
        yield from pulled(lambda *v, k=kernel: F.conv2d(*v, 1, k // 2), *values)
    yield from pulled(F.conv1d, filled((4, 16, 50), "float32", True), *weights(24, 16, 3))
    weight = filled((16, 24, 4, 4), "float32", True)
    yield from pulled(lambda *v: F.conv_transpose2d(*v, stride=2, padding=1), image, weight)
    for size, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 2, 0)):
        yield from pulled(lambda x, k=size, s=stride, p=padding: F.max_pool2d(x, k, s, p), image)
        yield from pulled(lambda x, k=size, s=stride: F.avg_pool2d(x, k, s), image)
    yield from pulled(lambda x: F.adaptive_avg_pool2d(x, 1), image)


def layers() -> Values:
    """Norms and attention."""
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


def losses() -> Values:
    """Losses, as means, sums and of each example."""
    names = ("mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy")
    for reduction in ("mean", "sum", "none"):
        for shape in SHAPES[:3]:
            x, y = filled(shape, "float32", True), filled(shape, "float32")
            for name in (*names, "binary_cross_entropy_with_logits"):
                yield from pulled(
                    lambda x, n=name, y=y, r=reduction: getattr(F, n)(x, y, reduction=r), x
                )
        x, y = filled((19, 37), "float32", True), wf.arange(19)
        yield from pulled(lambda x, y=y, r=reduction: F.cross_entropy(x, y, reduction=r), x)
        yield from pulled(lambda x, y=y, r=reduction: F.nll_loss(x, y, reduction=r), x)


def optimizers() -> Values:
    """Steps of optimizers on the parameters of small networks."""
    makers = (
        lambda p: wf.optim.SGD(p, 0.1), lambda p: wf.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: wf.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-4),
        lambda p: wf.optim.Adam(p, 0.1), lambda p: wf.optim.AdamW(p, 0.1),
        lambda p: wf.optim.RMSprop(p, 0.1), lambda p: wf.optim.Adagrad(p, 0.1),
    )  # fmt: skip
    for make in makers:
        parameters = [filled(s, "float32", True) for s in ((1,), *SHAPES, (7, 1), (1, 7))]
        optimizer = make(parameters)
        for _ in range(2):
            wf.stack([p.sum() for p in parameters]).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        yield from parameters
    parameters = [filled(s, "float32", True) for s in SHAPES]
    wf.stack([p.sum() for p in parameters]).sum().backward()
    yield wf.nn.utils.clip_grad_norm_(parameters, 1.0)
    yield from [p.grad for p in parameters if p.grad is not None]


PROGRAMS = (
    optimizers, elementwise, binary, casts, reductions, products, movement, chance, convolutions,
    layers, losses,
)  # fmt: skip
