"""PyTorch's convolutions, one turn at a time: `bench.conv` starts this."""

from __future__ import annotations

from bench.single import serve


def prepared(torch, kind, x, w, stride, padding, groups):
    """A function that runs one convolution or gradient, channels last."""
    last = torch.channels_last
    n, height, width, channels = x
    image = torch.rand(n, channels, height, width).to(memory_format=last)
    weights = torch.rand(w[3], w[2], w[0], w[1]).to(memory_format=last)
    forward = torch.nn.functional.conv2d
    y = forward(image, weights, None, stride, padding, 1, groups)
    if kind == "forward":
        return torch.no_grad()(lambda: forward(image, weights, None, stride, padding, 1, groups))
    pairs = [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups
    wanted = [kind == "input", kind == "weight", False]
    g = torch.rand_like(y)
    backward = torch.ops.aten.convolution_backward
    return lambda: backward(g, image, weights, None, *pairs, wanted)


if __name__ == "__main__":
    serve(prepared)
