"""Loss scaling: small gradients survive float16, bad steps are skipped, the factor adapts."""

import pytest

import weft as wf
from weft import errors


def step(w, opt, scaler, size):
    opt.zero_grad()
    loss = (w.half() * size).sum().float() * 1e-7
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()


def test_small_gradients_survive():
    for scaler, moved in ((wf.GradScaler(enabled=False), False), (wf.GradScaler(), True)):
        w = wf.ones(3, requires_grad=True)
        step(w, wf.optim.SGD([w], lr=1e6), scaler, 0.1)
        assert (w.tolist() != [1.0] * 3) is moved


def test_bad_steps_are_left_out_and_the_factor_adapts():
    w = wf.ones(3, requires_grad=True)
    opt = wf.optim.SGD([w], lr=1e6)
    scaler = wf.GradScaler(init_scale=2.0**10, growth_interval=2)
    opt.zero_grad()
    scaler.scale((w * float("inf")).sum()).backward()
    scaler.step(opt)
    scaler.update()
    assert w.tolist() == [1.0] * 3 and scaler.get_scale() == 2.0**9
    for _ in range(2):
        step(w, opt, scaler, 1.0)
    assert scaler.get_scale() == 2.0**10 and w.tolist() != [1.0] * 3
    other = wf.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() and other.is_enabled()
    scaler.update(4.0)
    assert scaler.get_scale() == 4.0 and wf.GradScaler(enabled=False).state_dict() == {}


def test_gradients_may_be_looked_at_before_the_step():
    w = wf.ones(2, requires_grad=True)
    opt = wf.optim.SGD([w], lr=1.0)
    scaler = wf.GradScaler(init_scale=8.0)
    scaler.scale([(w * 3).sum()])[0].backward()
    scaler.unscale_(opt)
    assert w.grad.tolist() == [3.0, 3.0]
    with pytest.raises(errors.OptimizerError, match="the gradients were divided already"):
        scaler.unscale_(opt)
    scaler.step(opt)
    assert w.tolist() == [-2.0, -2.0]
