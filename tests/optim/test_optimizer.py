"""Optimizers against their formulas, and their errors."""

import numpy as np
import pytest

import weft as wf
from weft import optim
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import OptimizerError


def tensor(array):
    return wrap(leaf(np.array(array)))


def parameter(array):
    return tensor(np.asarray(array, np.float32)).requires_grad_()


def run(make, start, grads):
    p = parameter(start)
    opt = make([p])
    for g in grads:
        p.grad = tensor(np.asarray(g, np.float32))
        opt.step()
    return p.detach().numpy()


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_lamb_is_algorithm_2():
    start, grads = drawn(3, 4), drawn(5, 3, 4, seed=1)
    p, m, v = start.astype(np.float64), 0.0, 0.0
    for t, g in enumerate(grads.astype(np.float64), 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        u = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + 0.01 * p
        p = p - 0.1 * np.linalg.norm(p) / np.linalg.norm(u) * u
    found = run(lambda ps: optim.LAMB(ps, lr=0.1, weight_decay=0.01), start, grads)
    np.testing.assert_allclose(found, p, rtol=1e-5, atol=1e-6)


def test_lamb_moves_a_zero_parameter():
    found = run(lambda ps: optim.LAMB(ps, lr=0.1), np.zeros(3), [np.ones(3)])
    np.testing.assert_allclose(found, -0.1 * np.ones(3), rtol=1e-5)


def test_lion_is_program_1():
    start, grads = drawn(7), drawn(6, 7, seed=1)
    p, m = start.astype(np.float64), np.zeros(7)
    for g in grads.astype(np.float64):
        p = p - 0.01 * (np.sign(0.9 * m + 0.1 * g) + 0.1 * p)
        m = 0.99 * m + 0.01 * g
    found = run(lambda ps: optim.Lion(ps, lr=0.01, weight_decay=0.1), start, grads)
    np.testing.assert_allclose(found, p, rtol=1e-5, atol=1e-6)


def test_muon_steps_along_singular_vectors():
    start, g = drawn(6, 3), drawn(6, 3, seed=1)
    u, _, v = np.linalg.svd(g.astype(np.float64), full_matrices=False)
    for options, ratio in (({}, 2**0.5), ({"adjust_lr_fn": "match_rms_adamw"}, 0.2 * 6**0.5)):
        p = run(lambda ps, o=options: optim.Muon(ps, lr=0.1, weight_decay=0.5, **o), start, [g])
        step = (0.95 * start - p) / (0.1 * ratio)
        values = u.T @ step @ v.T
        np.testing.assert_allclose(values, np.diag(np.diag(values)), atol=0.05)
        assert np.all(np.abs(np.diag(values) - 0.95) < 0.3)
    for wrong in ({"adjust_lr_fn": "theirs"}, {"lr": -1.0}):
        with pytest.raises(OptimizerError):
            optim.Muon([parameter(start)], **wrong)
    with pytest.raises(OptimizerError, match="expected matrices"):
        optim.Muon([parameter(drawn(3))])


def test_a_new_learning_rate_takes_effect():
    p = parameter([1.0])
    opt = optim.SGD([p], lr=1.0)
    for lr, expected in ((0.5, 0.5), (0.25, 0.25)):
        opt.param_groups[0]["lr"] = lr
        p.grad = tensor(np.ones(1, np.float32))
        opt.step()
        assert p.item() == expected


def test_groups_have_their_own_options():
    a, b = parameter([1.0]), parameter([1.0])
    opt = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    for p in (a, b):
        p.grad = tensor(np.ones(1, np.float32))
    opt.step()
    np.testing.assert_allclose([a.item(), b.item()], [0.9, 0.5])


def test_parameters_without_a_gradient_are_left_alone():
    a, b = parameter([1.0]), parameter([1.0])
    opt = optim.Adam([a, b], lr=0.1)
    a.grad = tensor(np.ones(1, np.float32))
    opt.step()
    assert b.item() == 1.0
    assert b not in opt.state


def test_the_update_is_in_place():
    p = parameter(drawn(64, 64))
    memory = p.detach().numpy()
    opt = optim.Adam([p])
    for _ in range(4):  # interpreted, then compiled
        p.grad = tensor(drawn(64, 64, seed=1))
        opt.step()
        assert p.detach().numpy() is memory


def test_a_step_flushes_before_the_next_record():
    p = parameter([1.0])
    p.grad = tensor(np.ones(1, np.float32))
    optim.SGD([p], lr=1.0).step()
    y = p + 1.0
    assert len(trace.now.pending) == 1
    assert y.item() == 1.0


def test_state_goes_over_to_another_optimizer():
    grads = drawn(6, 3, seed=1)
    whole = run(lambda ps: optim.Adam(ps, lr=0.1), np.ones(3), grads)
    p = parameter(np.ones(3))
    first = optim.Adam([p], lr=0.1)
    for i, g in enumerate(grads):
        if i == 3:
            second = optim.Adam([p], lr=99.0)
            second.load_state_dict(first.state_dict())
            first = second
        p.grad = tensor(g)
        first.step()
    np.testing.assert_array_equal(p.detach().numpy(), whole)


def test_a_closure_computes_the_loss():
    p = parameter([3.0])
    opt = optim.SGD([p], lr=0.5)

    def closure():
        opt.zero_grad()
        loss = p * p
        loss.backward()
        return loss

    assert opt.step(closure).item() == 9.0
    assert p.item() == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: optim.SGD([], lr=1.0), "SGD: got no parameters"),
        (lambda p: optim.SGD(p), "expected an iterable of tensors"),
        (lambda p: optim.SGD([p, p]), "a parameter is given twice"),
        (lambda p: optim.SGD([p * 2.0]), "expected leaves"),
        (lambda p: optim.SGD([1]), "expected tensors, got int"),
        (lambda p: optim.SGD([p], lr=-1), "expected lr >= 0, got -1"),
        (lambda p: optim.SGD([p], nesterov=True), "nesterov expects a momentum"),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), r"expected betas\[0\] from 0 to below 1"),
        (lambda p: optim.SGD([p]).load_state_dict({"param_groups": []}), "expected groups of"),
        (lambda p: optim.ExponentialMovingAverage([p], 2), "expected decay from 0 to 1"),
    ],
)
def test_errors(make, message):
    with pytest.raises((OptimizerError, TypeError), match=message):
        make(parameter([1.0]))


def test_averages_follow_the_parameters():
    p = parameter([0.0])
    opt, ema = optim.SGD([p], lr=1.0), optim.ExponentialMovingAverage([p], decay=0.9)
    expected, average = 0.0, 0.0
    for i in range(5):
        p.grad = tensor(np.full(1, -float(i), np.float32))
        opt.step()
        ema.update()
        expected += i
        average = 0.9 * average + 0.1 * expected
    with ema.average_parameters():
        np.testing.assert_allclose(p.item(), average, rtol=1e-6)
    assert p.item() == expected


def test_hooks_around_steps_and_state():
    p = wf.ones(2, requires_grad=True)
    optimizer, seen = wf.optim.SGD([p], lr=0.5), []
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", args))),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", kwargs))),
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("before")),
        optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1}),
        optimizer.register_load_state_dict_pre_hook(lambda o, state: seen.append(sorted(state))),
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded")),
    ]
    p.sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    assert p.tolist() == [0.5, 0.5] and state["more"] == 1
    listed = ["more", "param_groups", "state"]
    assert seen == [("pre", ()), ("post", {}), "before", listed, "loaded"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert "more" not in optimizer.state_dict() and len(seen) == 5


def test_a_step_may_get_another_closure():
    p = wf.ones(1, requires_grad=True)
    optimizer = wf.optim.LBFGS([p], max_iter=1)

    def closure():
        optimizer.zero_grad()
        loss = (p * 3).square().sum()
        loss.backward()
        return loss

    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((closure,), {}))
    assert optimizer.step(lambda: 1 / 0).item() == 9


def test_a_parameter_in_two_groups_has_one_number():
    p, q = (wf.ones(1, requires_grad=True) for _ in range(2))
    optimizer = wf.optim.SGD([p, q], lr=0.1)
    optimizer.param_groups.extend(optimizer.param_groups)
    assert [g["params"] for g in optimizer.state_dict()["param_groups"]] == [[0, 1], [0, 1]]


CARRYING = {  # values of PyTorch after 5 steps down p**2, the rates halved after each
    "ASGD": (lambda p: optim.ASGD([p], lr=0.05, t0=2), [2.2226194412794174, -1.4817462941862785]),
    "NAdam": (lambda p: optim.NAdam([p], lr=0.05), [2.9118217306708587, -1.9119699424607572]),
}


def descend(p, opt, steps):
    for _ in range(steps):
        p.grad = (2 * p).detach()
        opt.step()
        opt.param_groups[0]["lr"] *= 0.5


@pytest.mark.parametrize("name", CARRYING)
def test_scalars_are_carried_from_step_to_step(name):
    make, wanted = CARRYING[name]
    p = parameter(np.array([3.0, -2.0]))
    opt = make(p)
    descend(p, opt, 5)
    np.testing.assert_allclose(p.detach().numpy(), wanted, rtol=1e-6)
    other = parameter(p.detach().numpy().copy())
    second = make(other)
    second.load_state_dict(opt.state_dict())
    descend(p, opt, 2)
    descend(other, second, 2)
    np.testing.assert_array_equal(p.detach().numpy(), other.detach().numpy())


@pytest.mark.parametrize("name", CARRYING)
def test_a_state_without_scalars_continues(name):
    make, _ = CARRYING[name]
    p = parameter(np.array([3.0, -2.0]))
    opt = make(p)
    for _ in range(3):  # a constant rate: what the state lacks follows from the step
        p.grad = (2 * p).detach()
        opt.step()
    state = opt.state_dict()
    for entries in state["state"].values():
        for scalar in opt.carries:
            del entries[scalar]
    other = parameter(p.detach().numpy().copy())
    second = make(other)
    second.load_state_dict(state)
    descend(p, opt, 2)
    descend(other, second, 2)
    np.testing.assert_allclose(p.detach().numpy(), other.detach().numpy(), rtol=1e-7)


def test_momentum_that_begins_or_continues():
    """A first buffer is the gradient whatever the dampening; a loaded one is not the first."""
    p = parameter(np.array([1.0]))
    opt = optim.SGD([p], lr=1.0, dampening=0.5)
    for grad, momentum in ((1.0, 0.0), (1.0, 0.5), (1.0, 0.5)):
        opt.param_groups[0]["momentum"] = momentum
        p.grad = tensor(np.array([grad], np.float32))
        opt.step()
    assert p.item() == 1.0 - 1.0 - 1.0 - (0.5 + 0.5)
    loaded = optim.SGD([p], lr=1.0, momentum=0.5, dampening=0.5)
    groups = loaded.state_dict()["param_groups"]
    buffer = tensor(np.array([2.0], np.float32))
    loaded.load_state_dict({"state": {0: {"momentum_buffer": buffer}}, "param_groups": groups})
    before = p.item()
    p.grad = tensor(np.array([1.0], np.float32))
    loaded.step()
    assert p.item() == before - (2.0 * 0.5 + 0.5)
