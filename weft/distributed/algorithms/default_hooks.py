"""Hooks for `DistributedDataParallel.register_comm_hook`: the mean, also in fewer bits.

>>> import weft as wf, weft.distributed as dist
>>> from weft.distributed.algorithms.default_hooks import bf16_compress_hook
>>> dist.init_process_group()
>>> model = wf.nn.parallel.DistributedDataParallel(wf.nn.Linear(2, 1))
>>> model.register_comm_hook(None, bf16_compress_hook)
>>> model(wf.ones(1, 2)).sum().backward()
>>> model.module.weight.grad.tolist()
[[1.0, 1.0]]
>>> dist.destroy_process_group()
"""

from __future__ import annotations

from typing import Any

from weft.collectives.collective import all_reduce
from weft.collectives.future import Future
from weft.collectives.process_group import get_world_size
from weft.ir.dtype import DType, bfloat16, float16
from weft.nn.parallel.bucket import GradBucket, Hook
from weft.transport.group import Group

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
    "fp16_compress_wrapper", "noop_hook",
]  # fmt: skip


def allreduce_hook(process_group: Group | None, bucket: GradBucket) -> Future[Any]:
    """The mean over ranks, as without a hook.

    Args:
        process_group: the ranks; by default all.
        bucket: the gradients.
    """
    mean = bucket.buffer() / get_world_size(process_group)
    work: Any = all_reduce(mean, group=process_group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def noop_hook(state: Any, bucket: GradBucket) -> Future[Any]:
    """Each rank's own gradients, to find out what communication costs.

    Args:
        state: ignored.
        bucket: the gradients.
    """
    done = Future()
    done.set_result(bucket.buffer())
    return done


def _compressed(hook: Hook, dtype: DType) -> Hook:
    """A hook that gets gradients in another type."""

    def compressing(state: Any, bucket: GradBucket) -> Future[Any]:
        kind = bucket.buffer().dtype
        bucket.set_buffer(bucket.buffer().to(dtype))

        def back(done: Future[Any]) -> Any:
            found = done.value()
            return (found[0] if isinstance(found, list) else found).to(kind)

        return hook(state, bucket).then(back)

    return compressing


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that sends float16.

    Args:
        hook: what it does with gradients in float16.
    """
    return _compressed(hook, float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that sends bfloat16.

    Args:
        hook: what it does with gradients in bfloat16.
    """
    return _compressed(hook, bfloat16)


fp16_compress_hook = fp16_compress_wrapper(allreduce_hook)
bf16_compress_hook = bf16_compress_wrapper(allreduce_hook)
