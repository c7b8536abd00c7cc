"""-0.0 as an attribute is no 0.0: calls that differ in it alone share no plan, kernel or node."""

import copy
import pickle

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
import weft.tf1 as tf
from weft import jax
from weft.ir.signed_zero import MinusZero, told_apart
from weft.ops.declaration.attribute import freeze

X = np.array([-1, 0.0, -0.0, 2, np.nan], np.float32)
CALLS = {
    "pad": (lambda x, v: F.pad(x, (1, 1), value=v), lambda x, v: np.pad(x, 1, constant_values=v)),
    "leaky_relu": (F.leaky_relu, lambda x, v: np.where(x > 0, x, x * v)),
    "threshold": (lambda x, v: F.threshold(x, 0.5, v), lambda x, v: np.where(x <= 0.5, v, x)),
    "hardtanh": (lambda x, v: F.hardtanh(x * 0 - 1, v, 1.0), np.full_like),
    "nan_to_num": (
        lambda x, v: wf.nan_to_num(x, nan=v), lambda x, v: np.where(np.isnan(x), np.float32(v), x),
    ),
    "full_like": (wf.full_like, np.full_like),
    "masked_fill": (lambda x, v: x.masked_fill(x < 1, v), lambda x, v: np.where(x < 1, v, x)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("first", [0.0, -0.0])
def test_calls_in_turns(name, first):
    call, expected = CALLS[name]
    x = np.array([-1, -2.5, 0.25, 2, np.nan], np.float32)
    for value in (first, -first) * 4:
        wanted = np.signbit(expected(x, np.float32(value)))[:-1]
        for function in (call, wf.func.jit(lambda x, v=value: call(x, v))):
            found = function(*[wf.tensor(x), value][: 2 if function is call else 1]).numpy()
            assert np.signbit(found)[:-1].tolist() == wanted.tolist()


def test_nodes_of_a_graph():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        padded = [tf.pad(x, [[1, 1]], constant_values=v) for v in (0.0, -0.0)]
        found = session.run(padded, {x: [1, 2]})
    assert [np.signbit(y)[0] for y in found] == [False, True]


def test_traced_functions():
    for value in (0.0, -0.0, 0.0):
        found = jax.jit(lambda x, v=value: jax.numpy.pad(x, 1, constant_values=v))(X)
        assert np.signbit(np.asarray(found)[0]) == np.signbit(value)


def test_it_stays_apart_when_copied():
    zero = told_apart(-0.0)
    for each in (zero, copy.deepcopy(zero), pickle.loads(pickle.dumps(zero)), freeze([-0.0])[0]):
        assert type(each) is MinusZero and each == zero and each != 0.0 and each != 0.0
        assert hash(each) == hash(zero) and np.signbit(each) and each + 1 == 1
    assert told_apart(0.0) == 0.0 and type(told_apart(0.0)) is float and told_apart(0) == 0
