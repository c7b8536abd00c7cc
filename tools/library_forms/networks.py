"""Calls of whole kinds of networks: for small images, for denoising, for one step of a sequence.

As in `calls`, a program makes calls and yields what is to be computed.
"""

from __future__ import annotations

import functools

import weft as wf
from tools.library_forms.calls import Values, filled, pulled, weights
from weft.nn import functional as F


def images() -> Values:
    """What networks compute with images of few pixels, down to one, and at their edges."""
    for size in (12, 4, 2, 1):
        image = filled((4, 16, size, size), "float32", True)
        kinds = [(1, 1, 0), (3, 1, 1), (1, 2, 0), (3, 2, 1)]
        for kernel, stride, padding in [*kinds, *([(5, 1, 0), (3, 1, 0)] if size > 4 else [])]:
            weight, bias = weights(24, 16, kernel, kernel)
            call = functools.partial(F.conv2d, stride=stride, padding=padding)
            yield from pulled(call, image, weight)
            yield from pulled(call, image, weight, bias)
        mean, var, w, b = (filled((16,), "float32", grad) for grad in (False, False, True, True))
        yield from pulled(
            lambda x, w, b, m=mean, v=var: F.batch_norm(x, m, v, w, b, True), image, w, b
        )
    for channels in (1, 3):
        x, values = filled((4, channels, 32, 32), "float32", True), weights(24, channels, 7, 7)
        yield from pulled(lambda *v: F.conv2d(*v, None, 2, 3), x, values[0])
        values = filled((4, 24, 32, 32), "float32", True), *weights(channels, 24, 1, 1)
        yield from pulled(F.conv2d, *values)
        yield from pulled(F.conv2d, x, *weights(24, channels, 1, 1))
    for shape in ((4, 16), (4, 16, 12, 12)):
        yield from pulled(lambda x: F.dropout2d(x, 0.5, True), filled(shape, "float32", True))
    image = filled((4, 16, 12, 12), "float32", True)
    for mode in ("nearest", "bilinear"):
        yield from pulled(lambda x, m=mode: F.interpolate(x, scale_factor=2, mode=m), image)
    yield from pulled(lambda x: F.pixel_shuffle(x, 2), image)
    yield from pulled(lambda x: F.pixel_unshuffle(x, 2), image)
    x = wf.randint(0, 255, (12, 20, 3), dtype=wf.uint8)
    x = x.permute(2, 0, 1).contiguous().to(wf.float32) / 255
    mean, std = (filled((3, 1, 1), "float32") for _ in range(2))
    yield from (x.flip(-1), (x - mean) / std, F.pad(x, (4, 4, 4, 4))[:, 3:15, 2:22])


def denoising() -> Values:
    """Parts of U-Nets for diffusion: times, standardized weights, attention over pixels."""
    times, (w, b) = wf.arange(5), weights(24, 16)
    rates = wf.exp(wf.arange(8) * -1.5)
    angles = times[:, None] * rates[None, :]
    places = wf.cat((angles.sin(), angles.cos()), -1)
    yield from pulled(lambda w, b: F.linear(F.gelu(F.linear(places, w, b)), w.T, b[:16]), w, b)
    x, (w, b) = filled((5, 16, 12, 12), "float32", True), weights(24, 16, 3, 3)

    def standardized(x: wf.Tensor, w: wf.Tensor, b: wf.Tensor) -> wf.Tensor:
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), unbiased=False, keepdim=True)
        return F.conv2d(x, (w - mean) * (var + 1e-5).rsqrt(), b, padding=1)

    yield from pulled(standardized, x, w, b)
    for groups, channels in ((4, 16), (1, 24), (8, 8)):
        values = filled((5, channels, 12, 12), "float32", True), *weights(channels)[:1] * 2
        yield from pulled(lambda x, w, b, g=groups: F.silu(F.group_norm(x, g, w, b)), *values)
    scale, shift = (filled((5, 16, 1, 1), "float32", True) for _ in range(2))
    yield from pulled(lambda x, scale, shift: x * (scale + 1) + shift, x, scale, shift)
    for linear in (False, True):
        yield from pulled(
            functools.partial(_over_pixels, linear=linear), x, weights(72, 16, 1, 1)[0]
        )
    x, y = filled((5, 1, 12, 12), "float32", True), filled((5, 1, 12, 12), "float32")
    for loss in (F.smooth_l1_loss, F.mse_loss, F.l1_loss):
        yield from pulled(lambda x, f=loss: f(x, y), x)


def _over_pixels(x: wf.Tensor, w: wf.Tensor, linear: bool) -> wf.Tensor:
    """Attention between the pixels of images, by four heads."""
    batch, _, height, width = x.shape
    q, k, v = (y.reshape(batch, 4, 6, height * width) for y in F.conv2d(x, w).chunk(3, 1))
    if linear:
        context = wf.einsum("bhdn,bhen->bhde", k.softmax(-1), v)
        y = wf.einsum("bhde,bhdn->bhen", context, q.softmax(-2) * 0.5)
        return y.reshape(batch, 24, height, width)
    weights = wf.einsum("bhdi,bhdj->bhij", q * 0.5, k).softmax(-1)
    y = wf.einsum("bhij,bhdj->bhid", weights, v)
    return y.permute(0, 1, 3, 2).reshape(batch, 24, height, width)


def decoding() -> Values:
    """One step of a sequence at a time, in a batch of one."""
    x, h = filled((1, 1, 11), "float32", True), filled((1, 1, 19), "float32", True)
    for cell in (wf.nn.RNN, wf.nn.GRU, wf.nn.LSTM):
        model = cell(11, 19)
        state = (h, h) if cell is wf.nn.LSTM else h
        y, _ = model(x, state)
        yield y
        yield from wf.autograd.grad(y.sum(), [x, h, *model.parameters()])
    keys, (w, b) = filled((1, 5, 19), "float32", True), weights(19, 19)
    yield from pulled(lambda h, k: h.bmm(k.transpose(1, 2)).softmax(-1).bmm(k), h, keys)
    yield from pulled(lambda h, k: wf.dot(h.view(-1), k[0, 2]), h, keys)
    yield from pulled(F.linear, filled((1, 19), "float32", True), w, b)
    rows = wf.zeros(5, 1, 19)
    rows[2], rows[0], rows[4] = h[0] * 1, h[0] * 2, h[0] * 3
    yield rows.transpose(0, 1).squeeze(0)
    scores = wf.zeros(5)
    for i in (0, 1, 2, 4):
        scores[i] = wf.dot(h.view(-1), keys[0, i])
    yield scores


NETWORKS = (images, denoising, decoding)
