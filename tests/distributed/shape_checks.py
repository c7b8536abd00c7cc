"""Calls of ranks of which one alone meets new shapes: as many on all, in one order, made once.

Checked on each rank; called by job_checks.py.
"""

import numpy as np

import weft as wf
import weft.horovod.tensorflow as hvd
import weft.tf1 as tf
from weft import func
from weft.eager.record.run import stitched_tier, tier_choice
from weft.eager.record.run.stitched_tier import Stitched
from weft.transport import session


def calls() -> int:
    """How many calls this rank has made."""
    return session.current().transport.tally.all_calls


def lengths(rank: int, size: int) -> list[list[int]]:
    """The numbers of a rank in each step: all new, new to one rank alone, longer, known."""
    once = [1 + rank, 2]
    return [once, [size, 1, 1] if rank == size - 1 else once, [2 * size - rank, 1], once]


def check_shapes_from_collectives(rank: int, size: int) -> None:
    """Of each operation, in a program: integers and numbers, in loops, and one by one."""
    tf.reset_default_graph()
    own = tf.placeholder(tf.int32, [None])
    most, number = tf.reduce_max(own), tf.cast(tf.reduce_max(own), tf.float32)
    before = hvd.allreduce(tf.reduce_sum(own), op=hvd.Sum)  # takes its turn
    longest = hvd.allreduce(most, op=hvd.Max)
    rounded = tf.cast(hvd.allreduce(number, op=hvd.Max), tf.int32)
    last = hvd.broadcast(most, size - 1)
    three = tf.cast(hvd.allreduce(number * 0.0 + 3.0, op=hvd.Adasum), tf.int32)
    loop = tf.while_loop(
        lambda i, n: i < longest, lambda i, n: (i + 1, n + hvd.allreduce(i * 0 + 1, op=hvd.Sum)),
        [0, tf.constant(0)],
    )[1]  # fmt: skip
    mask = tf.sequence_mask(own, longest)
    again = hvd.allreduce(tf.shape(mask)[1] + most, op=hvd.Max)
    after = hvd.allreduce(tf.reduce_sum(own), op=hvd.Min)  # decides nothing
    fetches = {
        "mask": mask, "zeros": tf.zeros(tf.stack([rounded, last, three, loop])),
        "range": tf.range(again), "before": before, "after": after,
    }  # fmt: skip
    if rank:  # the order of fetches decides nothing
        fetches = dict(reversed(fetches.items()))
    with tf.Session() as runs:
        for step, found in enumerate(lengths(rank, size)):
            every = [lengths(i, size)[step] for i in range(size)]
            n, begin = max(map(max, every)), calls()
            y = runs.run(fetches, {own: found})
            assert calls() - begin == 7 + n
            assert y["mask"].tolist() == [[i < x for i in range(n)] for x in found]
            assert y["zeros"].shape == (n, max(every[-1]), 3, n * size)
            assert y["range"].size == 2 * n
            assert y["before"] == sum(map(sum, every)) and y["after"] == min(map(sum, every))


def check_rows_decide_shapes(rank: int, size: int) -> None:
    """Where only a run tells how many rows there are; some are sent in another order of fetches."""
    tf.reset_default_graph()
    own, rows = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None, 2])
    wide = tf.placeholder(tf.float32, [None])
    every = hvd.allgather(own)
    most = tf.reduce_max(every)
    sent, taken = hvd.alltoall(rows, tf.ones([size], tf.int32))
    part = hvd.reducescatter(tf.ones([size * most, 1]), op=hvd.Sum)
    first, second = hvd.grouped_allreduce([rows, wide], op=hvd.Adasum)
    fetches = [every, sent, taken, part, tf.zeros([most]), tf.zeros(tf.shape(every)), first, second]
    order = [*range(rank, len(fetches)), *range(rank)]
    counts = set()
    with tf.Session() as runs:
        for more in (0, 2):
            numbers = [[1] * size + [2 + more] * more * i for i in range(size)]
            feeds = {own: numbers[rank], rows: np.full([size, 2], rank + 1.0), wide: [1.0] * 3}
            begin = calls()
            found = runs.run([fetches[i] for i in order], feeds)
            counts.add(calls() - begin)
            y = [found[order.index(i)] for i in range(len(fetches))]
            longest = max(map(max, numbers))
            assert (
                y[0].tolist() == [x for line in numbers for x in line] and y[5].shape == y[0].shape
            )
            assert (
                y[1][:, 1].tolist() == [i + 1 for i in range(size)] and y[2].tolist() == [1] * size
            )
            assert y[3].tolist() == [[size]] * longest and y[4].shape == (longest,)
            assert y[6].shape == (size, 2) and y[7].tolist() == [1.0] * 3
    assert len(counts) == 1


def check_scalars_beside_gradients(rank: int, size: int) -> None:
    """What follows from numbers alone keeps its place behind gradients, with a new shape, too."""
    for step in range(2):
        rows = 3 + step * (rank == size - 1)
        w = wf.tensor([1.0, 1.0], requires_grad=True)
        (wf.ones(rows, 2) @ w).sum().backward()
        gradient = func.psum(w.grad)
        count = func.psum(wf.tensor(float(rows)))
        assert gradient.tolist() == [3 * size + step] * 2 and count == 3 * size + step


def check_reads_beside_collectives(rank: int, size: int) -> None:
    """What one rank alone computes at once, or reads while it traces, keeps their order."""
    side = 600 if rank == 0 else 3  # 1.4 MB of the user's are read at once, where that is possible
    data, held = np.ones((side, side), np.float32), []
    scaled = func.jit(lambda x: x * held[-1].item())
    for step in range(2):
        begin = calls()
        w = wf.ones(3, requires_grad=True)
        before = func.psum(wf.ones(2) * step)
        inner = func.psum((w * 2.0).sum())
        y = wf.from_numpy(data) @ (inner * wf.ones(side))
        assert before.tolist() == [size * step] * 2
        y.sum().backward()
        assert w.grad.tolist() == [2.0 * (600**2 + 9 * (size - 1))] * 3
        before, inner = func.psum(wf.ones(4) * step), func.psum(wf.ones(1))
        held.append(inner)
        y = scaled(wf.ones(2 + step * rank))  # traced again where the shape is new
        assert before.tolist() == [size * step] * 4 and y.sum() == size * (2 + step * rank)
        assert calls() - begin == 5


def check_errors_behind_collectives(rank: int, size: int) -> None:
    """The collective is not made again before the error is raised: one rank may have it alone."""
    for indices in ([0, 1], [0, 5]):
        begin, total = calls(), func.psum(wf.ones(2))
        try:
            found = (wf.ones(3)[wf.tensor(indices)] * total).tolist()
            assert found == [size, size] and indices == [0, 1]
        except IndexError:
            assert indices == [0, 5]
        assert calls() - begin == 1 and total.tolist() == [size, size]


def check_changing_sizes(rank: int, size: int) -> None:
    """Ranks whose sizes differ at every step choose alike: library kernels, then a program each."""
    w, met = wf.ones(8, 8) * 0.125, list[type]()
    for step in range(12):
        rows = 64 + 2 * step * (rank + 1)
        begin = calls()
        y = func.psum((wf.ones(rows, 8) @ w).tanh().sum(0))
        z = func.psum(y * 2.0)
        expected = size * np.tanh(1.0) * sum([64 + 2 * step * (other + 1) for other in range(size)])
        np.testing.assert_allclose(z.tolist(), [2.0 * expected] * 8, 1e-4)
        assert calls() - begin == 2
        met.append(type(next(reversed(tier_choice._tiers.values()))))
    assert met == [Stitched] * 12
    for runs in range(stitched_tier.STITCHED_RUNS_OF_MANY + 2):
        begin = calls()
        assert func.psum((wf.ones(64, 8) @ w).sum(0) + runs).tolist() == [size * (64.0 + runs)] * 8
        assert calls() - begin == 1


def check_sizes_of_one_rank(rank: int, size: int) -> None:
    """One rank meets ever new sizes, and others run a compiled program."""
    w = wf.randn(8, 8)
    for step in range(9):
        x = wf.ones(64 + 2 * step * (rank == size - 1), 8)
        begin = calls()
        y = func.psum((x @ w).tanh().sum(0))
        assert y.shape == (8,) and y.isfinite().all() and calls() - begin == 1
