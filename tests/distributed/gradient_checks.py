"""Gradients of Horovod's collectives, in both front ends, against its formulas in NumPy.

Each rank's loss is a sum of a result times weights of its own; `x` reaches it by another path, too,
so that a graph that is cut gives a wrong gradient and no error.
"""

import numpy as np

import weft as wf
import weft.horovod.tensorflow as tf_hvd
import weft.horovod.torch as hvd
import weft.tf1 as tf


def given(rank, *shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + rank


def weights(rank, shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) * (rank + 1) + 1


def cases(size):
    """By name: the call with a front end's functions, rows of a rank, the gradient of a rank.

    The gradient is taken from the shape of x and a function that gives each rank's weights.
    """
    several = range(size)

    def added(w, shape, factor):
        return factor * sum(w(i, shape) for i in several)

    def gathered(r, w):
        rows = [i + 1 for i in several]
        mean = added(w, (sum(rows), 2), 1 / size)
        return mean[sum(rows[:r]) : sum(rows[: r + 1])]

    def scattered(w, rows, factor):
        return factor * np.concatenate([w(i, (len(p),)) for i, p in enumerate(rows)])

    def sent_back(r, w, splits):
        taken = [np.split(w(i, (size * splits[i],)), size)[r] for i in several]
        return np.concatenate(taken)

    uneven = [1] * (size - 1) + [2]
    parts = np.array_split(np.arange(2 * size + 1), size)
    even = np.array_split(np.arange(2 * size), size)
    return {
        "mean": (lambda h, x: h.allreduce(x), (2,), lambda r, w: added(w, (2,), 1 / size)),
        "sum": (
            lambda h, x: h.allreduce(x, op=h.Sum, prescale_factor=2.0, postscale_factor=0.25),
            (2,), lambda r, w: added(w, (2,), 0.5),
        ),
        "half": (
            lambda h, x: h.allreduce(x, op=h.Sum, compression=h.Compression.fp16), (2,),
            lambda r, w: added(w, (2,), 1),
        ),
        "group": (
            lambda h, x: h.grouped_allreduce([x, 2 * x])[1], (2,),
            lambda r, w: added(w, (2,), 2 / size),
        ),
        "gather": (lambda h, x: h.allgather(x), None, gathered),
        "gather group": (lambda h, x: h.grouped_allgather([x, x])[0], None, gathered),
        "broadcast": (
            lambda h, x: h.broadcast(x, 1), (2,),
            lambda r, w: added(w, (2,), (r == 1) / size),
        ),
        "all to all": (
            lambda h, x: h.alltoall(x), (2 * size,), lambda r, w: sent_back(r, w, [2] * size)
        ),
        "all to all by splits": (
            lambda h, x: h.alltoall(x, splits=as_splits(h, uneven))[0], (size + 1,),
            lambda r, w: sent_back(r, w, uneven),
        ),
        "scatter": (
            lambda h, x: h.reducescatter(x), (2 * size,), lambda r, w: scattered(w, even, 1)
        ),
        "scatter sum": (
            lambda h, x: h.reducescatter(x, op=h.Sum), (2 * size + 1,),
            lambda r, w: scattered(w, parts, size),
        ),
        "scatter group": (
            lambda h, x: h.grouped_reducescatter([x, x], op=h.Sum, prescale_factor=0.5)[1],
            (2 * size,), lambda r, w: scattered(w, even, 0.5 * size),
        ),
    }  # fmt: skip


def as_splits(h, numbers):
    return wf.tensor(numbers) if h is hvd else tf.constant(numbers)


def check_gradients_are_horovods(rank, size):
    for name, (call, shape, wanted) in cases(size).items():
        x = wf.tensor(given(rank, *(shape or (rank + 1, 2)))).requires_grad_()
        y = call(hvd, x * 3)
        ((y * wf.tensor(weights(rank, tuple(y.shape)))).sum() + x.sum()).backward()
        assert y.requires_grad, name
        np.testing.assert_allclose(x.grad, 3 * wanted(rank, weights) + 1, 1e-3, err_msg=name)


def check_gradients_in_graphs_are_horovods(rank, size):
    for name, (call, shape, wanted) in cases(size).items():
        tf.reset_default_graph()
        at = given(rank, *(shape or (rank + 1, 2)))
        x = tf.placeholder(tf.float32, at.shape)
        y = call(tf_hvd, x * 3)
        w = tf.placeholder(tf.float32)
        (g,) = tf.gradients(tf.reduce_sum(y * w) + tf.reduce_sum(x), [x])
        with tf.Session() as session:
            own = weights(rank, session.run(y, {x: at}).shape)
            found = session.run(g, {x: at, w: own})
        np.testing.assert_allclose(found, 3 * wanted(rank, weights) + 1, 1e-3, err_msg=name)


def check_more_of_gradients(rank, size):
    """A maximum as Horovod has it; in place; asynchronous; twice."""
    x = wf.tensor(given(rank, 2)).requires_grad_()
    (hvd.allreduce(x * 3, op=hvd.Max) * wf.tensor(weights(rank, (2,)))).sum().backward()
    assert x.grad.tolist() == [3, 3 * (size + 1)]
    y = x * 3
    hvd.allreduce_(y, op=hvd.Sum)
    assert y.tolist() == [3 * sum(i + j for j in range(size)) for i in range(2)]
    (g,) = wf.autograd.grad(y.sum(), x)
    assert g.tolist() == [3, 3]
    assert not hvd.synchronize(hvd.allreduce_async(x * 3)).requires_grad
    (g,) = wf.autograd.grad(hvd.allreduce(x**3, op=hvd.Sum).sum(), x, create_graph=True)
    x.grad = None
    g.sum().backward()
    np.testing.assert_allclose(x.grad, 6 * size * x.detach(), 1e-5)


def check_integers(rank, size):
    """Rounded towards zero, as Horovod's C++ does; also where factors are applied."""
    x = np.array([-2 * size + 1, 5] * size, np.int32)
    mean = x.tolist()
    assert hvd.allreduce(wf.tensor(x)).tolist() == mean
    assert hvd.allreduce(wf.tensor([-1 if rank else -size])).tolist() == [-1]
    assert hvd.reducescatter(wf.tensor(x)).tolist() == mean[:2]
    assert hvd.allreduce(wf.tensor([-3]), op=hvd.Sum, prescale_factor=0.5).tolist() == [-size]
    tf.reset_default_graph()
    calls = [
        tf_hvd.allreduce(tf.constant([-1 if rank else -size])),
        tf_hvd.reducescatter(tf.constant(x)),
        tf_hvd.allreduce(tf.constant([-3]), op=tf_hvd.Sum, prescale_factor=0.5),
    ]  # fmt: skip
    with tf.Session() as session:
        found = [y.tolist() for y in session.run(calls)]
    assert found == [[-1], mean[:2], [-size]]
