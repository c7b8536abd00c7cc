"""PyTorch's convolutions, one turn for each line of the input: `bench.conv` starts this."""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    import torch

    torch.set_num_threads(int(sys.argv[1]))
    step = None
    print("ready", flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        start = time.perf_counter()
        if "turn" not in command:
            step = prepared(torch, **command)
            step()
            step()
            print(time.perf_counter() - start, flush=True)
            continue
        count = 0
        while not count or time.perf_counter() - start < command["turn"]:
            step()
            count += 1
        print((time.perf_counter() - start) / count, flush=True)


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
    main()
