"""`jit`: what is traced once, what retraces, and what is checked at each call."""

import gc
import weakref

import numpy as np

import weft as wf
from weft import func
from weft.eager.record.pending.state import trace


def numbers(n):
    return np.linspace(0.2, 1.5, n)


def test_jit_runs_python_once_per_signature():
    calls = []

    @func.jit
    def f(x, y):
        calls.append(x.shape)
        return {"sum": x + y, "name": "f"}

    for n in (2, 2, 3, 2):
        found = f(wf.from_numpy(numbers(n)), 1.0)
        np.testing.assert_allclose(found["sum"].numpy(), numbers(n) + 1)
        assert found["name"] == "f"
    assert calls == [(2,), (3,)]


def test_jit_tells_a_call_from_the_one_before():
    traced = []

    @func.jit
    def f(x, y=0.5):
        traced.append(x.shape)
        return x * y

    pair, three = wf.tensor([1.0, 2.0], requires_grad=True), wf.tensor([1.0, 2.0, 3.0])
    for _ in range(2):
        for x in (pair, three):
            assert f(x).tolist() == f(x).tolist() == [v / 2 for v in x.tolist()]
            assert f(x, x).tolist() == f(x, x).tolist() == [v * v for v in x.tolist()]
            assert f(x, y=2.0).tolist() == f(x, 2.0).tolist() == [v * 2 for v in x.tolist()]
        assert f(pair).requires_grad and not f(three).requires_grad
        with wf.no_grad():
            assert not f(pair).requires_grad
    assert len(traced) == 2 * 4 + 1  # shapes, ways to call; once without gradients


def test_jit_sees_what_changes_outside():
    w = wf.from_numpy(numbers(2))
    f = func.jit(lambda x: x * w)
    f(wf.from_numpy(numbers(2))).numpy()
    w.mul_(2.0)
    np.testing.assert_allclose(f(wf.from_numpy(numbers(2))).numpy(), numbers(2) * numbers(2) * 2)


def test_jit_changes_what_is_outside():
    total = wf.zeros(())

    @func.jit
    def f(x):
        total.add_(x.sum())
        return x * 2

    for _ in range(3):
        f(wf.ones(2)).numpy()
    assert total.item() == 6.0


def test_jit_draws_new_numbers():
    f = func.jit(lambda x: x + wf.rand(3))
    assert f(wf.zeros(3)).tolist() != f(wf.zeros(3)).tolist()


def test_static_arguments():
    @func.jit(static_argnums=1, static_argnames="k")
    def f(x, n, k=1):
        return sum([x] * n) * k

    assert f(wf.tensor(2.0), 3, k=2).item() == 12.0
    assert f(wf.tensor(2.0), 4, k=2).item() == 16.0


def test_jit_of_a_method():
    class Model:
        def __init__(self, w):
            self.w = w

        @func.jit
        def __call__(self, x):
            return x * self.w

        @func.jit(static_argnums=(0, 2))  # as in JAX, the instance is argument 0
        def repeated(self, x, n):
            return sum([x * self.w] * n)

    assert Model(2.0)(wf.tensor(3.0)).item() == 6.0
    assert Model(5.0)(wf.tensor(3.0)).item() == 15.0
    assert Model(5.0).repeated(wf.tensor(3.0), 2).item() == 30.0


def test_jit_of_the_same_function_shares_its_traces():
    traced = []

    def f(x):
        traced.append(x)
        return x * 2.0

    assert [func.jit(f)(wf.tensor(n)).item() for n in (1.0, 2.0)] == [2.0, 4.0]
    assert len(traced) == 1
    found = weakref.ref(f)
    traced.clear()
    del f
    gc.collect()
    assert found() is None


def test_steps_with_loops_are_programs_of_their_own():
    @func.jit
    def step(x):
        return func.scan(lambda carry, y: (carry + y, carry), x, wf.ones(3))[0]

    x = wf.tensor(0.0)
    for _ in range(4):
        x = step(x)
        assert len(trace.now.pending) == 1
    assert x.item() == 12.0
