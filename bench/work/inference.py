"""Inference of image networks on one image: `inference:NETWORK`; the outputs are fetched.

Weft's networks are under `jit`, so that Python records a step once, as in a compiled peer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.work.batches import batch_of


def weft(threads, name):
    import weft as wf
    from weft.cli.workload import workload

    wf.manual_seed(0)
    work = workload(name)
    model = wf.func.jit(work.make().eval())
    (x,), _ = work.data(1)

    def step():
        with wf.no_grad():
            return model(x).numpy()

    return step


def _network(threads, name):
    import torch

    from bench.work.networks import NETWORKS

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    (x,), _ = batch_of(name, 1)
    return NETWORKS[name].make().eval(), torch.from_numpy(x)


def _torch_step(threads, name, channels_last=False, compiled=False):
    import torch

    model, x = _network(threads, name)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    run = torch.compile(model) if compiled else model

    def step():
        with torch.inference_mode():
            return run(x).numpy()

    return step


def torch(threads, name):
    return _torch_step(threads, name)


def torch_channels_last(threads, name):
    return _torch_step(threads, name, channels_last=True)


def torch_compile(threads, name):
    return _torch_step(threads, name, channels_last=True, compiled=True)


def onnxruntime(threads, name):
    import onnxruntime
    import torch

    model, x = _network(threads, name)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model.onnx"))
        torch.onnx.export(model, (x,), path, input_names=["x"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    feed = {"x": x.numpy()}
    return lambda: session.run(None, feed)[0]
