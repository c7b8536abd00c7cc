"""Training steps of the six networks: `training:NETWORK`; the loss is fetched."""

from __future__ import annotations

import contextlib

from bench.work.batches import batch_of


def _weft_step(name, dtype):
    import weft as wf
    from weft.cli.workload import training_step, workload

    wf.manual_seed(0)
    work = workload(name)
    return training_step(work, work.make(), work.batch, dtype)


def weft(threads, name):
    return _weft_step(name, "float32")


def weft_bf16(threads, name):
    return _weft_step(name, "bfloat16")


def _torch_step(threads, name, channels_last=False, compiled=False, half=False):
    import torch

    from bench.work.networks import NETWORKS

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    network = NETWORKS[name]
    model = network.make()
    inputs, labels = batch_of(name, network.batch)
    inputs, labels = [torch.from_numpy(x) for x in inputs], torch.from_numpy(labels)
    if channels_last and network.images:
        model = model.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) for x in inputs]
    optimizer = network.optimize(model)
    run = torch.compile(model) if compiled else model

    def step():
        with torch.autocast("cpu", torch.bfloat16) if half else contextlib.nullcontext():
            outputs = run(*inputs)
        loss = network.loss(outputs.float(), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def torch(threads, name):
    return _torch_step(threads, name)


def torch_channels_last(threads, name):
    return _torch_step(threads, name, channels_last=True)


def torch_compile(threads, name):
    return _torch_step(threads, name, channels_last=True, compiled=True)


def torch_bf16(threads, name):
    return _torch_step(threads, name, channels_last=True, half=True)


def jax(threads, name):
    from bench.work import resnet_jax

    return resnet_jax.training_step(*batch_of(name, 16))


def tf2_function(threads, name):
    from bench.work import resnet_tf

    return resnet_tf.training_step(threads, *batch_of(name, 16))
