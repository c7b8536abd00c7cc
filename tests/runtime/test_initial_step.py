"""First values of variables: NumPy's are those of a compiled program, bit for bit."""

import numpy as np
import pytest

from weft import ops
from weft.ir.graph import Graph
from weft.passes.pipeline import specialize
from weft.passes.step import Request
from weft.runtime.finish import on_state
from weft.runtime.initial_step import MOST, InitialStep, is_initial
from weft.runtime.memory.state import State

SHAPE = (37, 5)


def step_of(*values):
    graph = Graph()
    with graph.as_default():
        targets = [
            ops.assign(ops.variable(key=f"v{i}", dtype="float32", shape=SHAPE), make()).node
            for i, make in enumerate(values)
        ]
    return specialize(Request(graph, (), tuple(targets), ()), (), {}, {}, {})


def uniform(shape=SHAPE):
    counter = ops.counter(key="steps", start=7)
    return ops.random_uniform(counter, (0, 0), shape, low=-0.1, high=0.3)


def test_bits_are_those_of_a_program():
    step = step_of(uniform, lambda: ops.full(shape=SHAPE, value=np.float32(2.5), dtype="float32"))
    assert is_initial(step)
    found = []
    for program in (InitialStep(step, 1), on_state(step, 1, 0)):
        state = State()
        program.run([], state)
        found.append({key: state[key] for key in ("v0", "v1", "steps")})
    assert int(found[0]["steps"]) == 8
    for key, value in found[0].items():
        assert np.array_equal(value, found[1][key])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ops.random_normal(ops.counter(key="steps"), (0, 0), SHAPE),
        lambda: ops.sum(uniform((3, *SHAPE)), axes=(0,)),
        lambda: ops.read(ops.variable(key="other", dtype="float32", shape=SHAPE)),
        lambda: uniform((MOST // 185, *SHAPE))[0],
    ],
)
def test_others_are_compiled(make):
    assert not is_initial(step_of(make))
