"""Learning rates against their formulas."""

import math

import numpy as np
import pytest

from weft import optim
from weft.eager.call import leaf, wrap
from weft.errors import OptimizerError
from weft.optim import lr_scheduler


def optimiser(lr=1.0, **options):
    p = wrap(leaf(np.ones(1, np.float32))).requires_grad_()
    return optim.SGD([p], lr=lr, **options)


def rates(make, steps, **options):
    opt = optimiser(**options)
    scheduler = make(opt)
    found = []
    for _ in range(steps):
        found.append(opt.param_groups[0]["lr"])
        scheduler.step()
    return found


def test_warm_up_then_cosine():
    found = rates(lambda o: lr_scheduler.WarmupCosineLR(o, warmup=2, total=6, eta_min=0.1), 8)
    part = [0.1 + 0.9 * (1 + math.cos(math.pi * i / 4)) / 2 for i in range(5)]
    np.testing.assert_allclose(found, [0.5, 1.0, *part, 0.1])


def test_a_scheduler_goes_on_from_its_state():
    whole = rates(lambda o: lr_scheduler.CosineAnnealingLR(o, 10), 10)
    opt = optimiser()
    first = lr_scheduler.CosineAnnealingLR(opt, 10)
    for _ in range(4):
        first.step()
    second = lr_scheduler.CosineAnnealingLR(opt, 99)
    second.load_state_dict(first.state_dict())
    second.step()
    assert opt.param_groups[0]["lr"] == whole[5]


def test_one_cycle_turns_the_momentum():
    opt = optimiser(momentum=0.9)
    scheduler = lr_scheduler.OneCycleLR(opt, 1.0, total_steps=10)
    assert opt.param_groups[0]["momentum"] == 0.95
    for _ in range(2):
        scheduler.step()
    assert opt.param_groups[0]["momentum"] == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0), "expected total_steps"),
        (lambda o: lr_scheduler.LambdaLR(o, [abs, abs]), "expected 1 functions"),
        (lambda o: lr_scheduler.SequentialLR(o, [], [1]), "milestones"),
        (lambda o: rates(lambda _: lr_scheduler.OneCycleLR(o, 1.0, 2), 4), "2 steps at most"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(OptimizerError, match=message):
        make(optimiser())
