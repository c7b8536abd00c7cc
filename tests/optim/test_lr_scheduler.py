"""Learning rates against their formulas."""

import math

import numpy as np
import pytest

from weft import optim
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import OptimizerError
from weft.optim import lr_scheduler


def optimizer(lr=1.0, **options):
    p = wrap(leaf(np.ones(1, np.float32))).requires_grad_()
    opt = optim.SGD([p], lr=lr, **options)
    opt.step()  # a scheduler that steps before it warns
    return opt


def rates(make, steps, **options):
    opt = optimizer(**options)
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


def test_a_scheduler_continues_from_its_state():
    whole = rates(lambda o: lr_scheduler.CosineAnnealingLR(o, 10), 10)
    opt = optimizer()
    first = lr_scheduler.CosineAnnealingLR(opt, 10)
    for _ in range(4):
        first.step()
    second = lr_scheduler.CosineAnnealingLR(opt, 99)
    second.load_state_dict(first.state_dict())
    second.step()
    assert opt.param_groups[0]["lr"] == whole[5]


def test_one_cycle_turns_the_momentum():
    opt = optimizer(momentum=0.9)
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
def test_errors(make, message):
    with pytest.raises(OptimizerError, match=message):
        make(optimizer())


def test_a_scheduler_that_steps_first_warns():
    p = wrap(leaf(np.ones(1, np.float32))).requires_grad_()
    scheduler = lr_scheduler.StepLR(optim.SGD([p]), 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()


def test_a_step_to_an_epoch_is_deprecated():
    scheduler = lr_scheduler.StepLR(optimizer(), 2)
    with pytest.warns(UserWarning, match="step.epoch"):
        scheduler.step(4)
    assert scheduler.get_last_lr() == pytest.approx([0.01])


def test_get_lr_of_a_subclass():
    class Halved(lr_scheduler.LRScheduler):
        def get_lr(self):
            return [base / (1 + self.last_epoch) for base in self.base_lrs]

    assert rates(Halved, 3) == [1.0, 0.5, 1 / 3]


def test_the_state_of_functions_that_are_objects():
    class Times:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, t):
            return self.factor * t

    first = lr_scheduler.LambdaLR(optimizer(), Times(3))
    second = lr_scheduler.LambdaLR(optimizer(), Times(4))
    second.load_state_dict(first.state_dict())
    assert second.rates(2) == [6.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda o: lr_scheduler.StepLR(None, 1),
        lambda o: lr_scheduler.ConstantLR(o, 2.0),
        lambda o: lr_scheduler.LinearLR(o, 0.0),
        lambda o: lr_scheduler.CyclicLR(o, 1, 2, mode="cats", cycle_momentum=False),
        lambda o: lr_scheduler.CyclicLR(o, [1, 2], 2, cycle_momentum=False),
        lambda o: lr_scheduler.CyclicLR(optim.Adagrad(o.param_groups[0]["params"]), 1, 2),
        lambda o: lr_scheduler.OneCycleLR(o, 1.0, 10, pct_start=1.1),
        lambda o: lr_scheduler.OneCycleLR(o, 1.0, 10, anneal_strategy="cats"),
        lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0),
        lambda o: lr_scheduler.ReduceLROnPlateau(o, min_lr=[0.1, 0.2]),
        lambda o: lr_scheduler.ChainedScheduler([]),
        lambda o: optim.swa_utils.SWALR(o, 1.0, anneal_epochs=-1),
        lambda o: optim.swa_utils.SWALR(o, [1.0, 2.0]),
        lambda o: optim.swa_utils.SWALR(o, 1.0, anneal_strategy="cats"),
    ],
)
def test_options_that_raise(make):
    with pytest.raises(OptimizerError):
        make(optimizer())


def test_classes_are_in_the_module_where_programs_look():
    for name in lr_scheduler.__all__:
        kind = getattr(lr_scheduler, name)
        assert getattr(kind, "__module__", lr_scheduler.__name__) == lr_scheduler.__name__


class Halving(lr_scheduler.LRScheduler):
    """As programs write schedules for PyTorch."""

    def get_lr(self):
        assert self._get_lr_called_within_step
        return [base / 2**self.last_epoch for base in self.base_lrs]

    def _get_closed_form_lr(self):
        return [base / 4**self.last_epoch for base in self.base_lrs]


def test_a_schedule_of_a_program_reads_what_pytorch_sets():
    schedule = Halving(optimizer())
    assert not schedule._get_lr_called_within_step and not schedule._is_initial
    schedule.step()
    assert schedule.get_last_lr() == [0.5]
    with pytest.warns(UserWarning, match="deprecated|own choice"):
        schedule.step(2)
    assert schedule.get_last_lr() == [1 / 16]
