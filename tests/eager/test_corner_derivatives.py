"""First and second derivatives at ties, zeros and infinities, in all front ends, as numbers."""

import math

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
import weft.scipy.special as sp
import weft.tf1 as tf
from weft import func
from weft.tf1 import keras

INF, NAN = math.inf, math.nan
F = wf.nn.functional


def twice(function, *values):
    """The gradients, and the gradients of the sum of the first one, in the first three runs."""
    for _ in range(3):
        xs = [wf.tensor(v, dtype=wf.float64, requires_grad=True) for v in values]
        firsts = wf.autograd.grad(function(*xs).sum(), xs, create_graph=True)
        seconds = wf.autograd.grad(firsts[0].sum(), xs)
        found = [g.tolist() for g in (*firsts, *seconds)]
    return found


def loss(function, **options):
    return lambda x, y: function(x, y, reduction="none", **options)


LN2 = math.log(2)
TIES = {
    "logaddexp2": (wf.logaddexp2, 1.5, 1.5, [0.5, 0.5, LN2 / 4, -LN2 / 4]),
    "logaddexp": (wf.logaddexp, 1.5, 1.5, [0.5, 0.5, 0.25, -0.25]),
    "huber": (loss(F.huber_loss, delta=2.0), 1.0, 1.0, [0.0, 0.0, 1.0, -1.0]),
    "huber, infinite": (loss(F.huber_loss, delta=2.0), INF, 1.0, [2.0, -2.0, 0.0, 0.0]),
    "smooth l1": (loss(F.smooth_l1_loss, beta=0.25), 1.0, 1.0, [0.0, 0.0, 4.0, -4.0]),
    "smooth l1, infinite": (loss(F.smooth_l1_loss), 0.0, INF, [-1.0, 1.0, 0.0, 0.0]),
    "hypot": (wf.hypot, 0.0, 0.0, [0.0, 0.0, 0.0, 0.0]),
    "atan2": (wf.atan2, 0.0, 0.0, [0.0, 0.0, 0.0, 0.0]),
    "atan2, small": (wf.atan2, 1e-200, 0.0, [0.0, -1e200, 0.0, INF]),
    "bce": (loss(F.binary_cross_entropy), 0.0, 1.0, [-1e12, 100.0, 1e12, -1e12]),
    "margin": (
        lambda x, y: F.margin_ranking_loss(x, y, wf.ones_like(x), margin=1.0, reduction="none"),
        2.0, 1.0, [-1.0, 1.0, 0.0, 0.0],
    ),
    "complex norm": (
        lambda x, y: wf.linalg.vector_norm(wf.complex(x, y) * wf.tensor([1.0, 0.0])),
        [0.0, 5.0], [2.0, 0.0], [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0], [0.0, 0.0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TIES)
def test_two_numbers(name):
    function, x, y, wanted = TIES[name]
    np.testing.assert_allclose(twice(function, x, y), wanted, rtol=1e-11, atol=1e-300)


ONE = {
    "i0": (wf.i0, [1e-8, 1e-20, 750.0, -750.0], [5e-9, 5e-21, INF, -INF], [0.5, 0.5, INF, INF]),
    "i1": (wf.special.i1, [1e-20, 1e-8, 2.0], [0.5, 0.5, 1.4842668750174028], [
        3.75e-21, 3.75e-9, 1.24616263078796]),
    "i0e": (wf.special.i0e, [1e10, 1.0], [-1.994711402e-16, -0.257849192243932], [
        2.992067103e-26, 0.3077879691381555]),
    "i1e": (wf.special.i1e, [1e-8], [0.49999999], [-0.99999998125]),
    "log_ndtr": (wf.special.log_ndtr, [0.0, 90.0], [0.7978845608, 0.0], [-0.6366197724, 0.0]),
    "elu": (F.elu, [-40.0], [4.248354255e-18], [4.248354255e-18]),
    "selu": (F.selu, [-40.0], [7.469028818e-18], [7.469028818e-18]),
    "logit": (wf.logit, [-1.0, 0.5, 1.5], [NAN, 4.0, NAN], None),
    "entr": (wf.special.entr, [0.0, 1.0, -1.0], [INF, -1.0, NAN], None),
    "erfcx": (wf.special.erfcx, [1e3, 1e6], [-5.641887372655e-7, -5.641895835e-13], None),
    "norm -1": (lambda x: wf.linalg.vector_norm(x, -1), [0.0, 2.0], [0.0, 0.0], [0.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_one_number(name):
    function, x, slope, curve = ONE[name]
    first, second = twice(function, x)
    np.testing.assert_allclose(first, slope, rtol=1e-8)
    if curve is not None:
        np.testing.assert_allclose(second, curve, rtol=1e-8, atol=1e-300)


SOFT = {
    (INF, 1.0, 2.0): [NAN, 0.0, 0.0],
    (NAN, 1.0, 2.0): [NAN, NAN, NAN],
    (-INF, -INF, -INF): [0.0, 0.0, 0.0],  # nothing to share
    (-INF, 1.0, 1.0): [0.0, 0.5, 0.5],
}


def of_tf1(function, values):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(values)
        return session.run(tf.gradients(function(x), [x])[0])


@pytest.mark.parametrize("values", SOFT)
def test_logsumexp_in_every_front_end(values):
    x = wf.tensor(values, requires_grad=True)
    weights = wnp.asarray([1.0, 1.0, 1.0])
    found = [
        wf.autograd.grad(f(x), x)[0].numpy()
        for f in (
            lambda x: wf.logsumexp(x, 0),
            lambda x: x[None].logsumexp((0, 1)),
            lambda x: wf.special.logsumexp(x, 0),
        )
    ]
    found.append(func.grad(lambda x: wf.logsumexp(x, 0))(x.detach()).numpy())
    found.append(np.asarray(func.grad(sp.logsumexp)(wnp.asarray(np.float32(values)))))
    found.append(of_tf1(tf.reduce_logsumexp, values))
    if values[0] != -INF or values[1] != -INF:
        weighted = func.grad(lambda x: sp.logsumexp(x, b=weights))
        found.append(np.asarray(weighted(wnp.asarray(np.float32(values)))))
    for gradient in found:
        np.testing.assert_allclose(gradient, SOFT[values], rtol=1e-6)


def test_differences_that_overflow_have_bounded_gradients():
    x = wf.tensor([3e38, -3e38], requires_grad=True)
    for function in (F.huber_loss, F.smooth_l1_loss):
        (g,) = wf.autograd.grad(function(x, -x.detach()), x)
        assert g.tolist() == [0.5, -0.5]


def test_equal_arguments_of_betaln():
    x = wnp.asarray([800.0, 20.0])
    slopes = func.grad(lambda a, b: sp.betaln(a, b).sum(), argnums=(0, 1))(x, x)
    for slope in slopes:
        np.testing.assert_allclose(np.asarray(slope), [-0.69345978, -0.70580338], rtol=1e-5)


def test_keras_hinge_at_its_margin():
    found = of_tf1(lambda x: keras.losses.hinge([[0.0, 1.0]], x[None]), [-1.0, 1.0])
    assert found.tolist() == [0.5, -0.5]


def test_the_curvature_of_a_global_norm_at_a_zero():
    def slopes(x):
        return tf.gradients(tf.global_norm([x]), [x])[0]

    assert of_tf1(slopes, [0.0, 2.0, 0.0]).tolist() == [0.5, 0.0, 0.5]
