"""Accepted forms of `configure_optimizers`, of manual optimization, and of data."""

import math

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ArgumentError
from weft.nn import functional as F
from weft.train.optimizers import optimizers_of

from .line import Classifier, batches, quiet, weights


def forms():
    """What `configure_optimizers` may return, with how many of each it is."""
    w = nn.Parameter(wf.ones(1))
    a, b = wf.optim.SGD([w], lr=1.0), wf.optim.Adam([w])
    s = wf.optim.lr_scheduler.StepLR(a, 1)
    plateau = wf.optim.lr_scheduler.ReduceLROnPlateau(a)
    every = {"scheduler": s, "interval": "step", "frequency": 2, "name": "rate"}
    return [
        (None, 0, 0), (a, 1, 0), ([a, b], 2, 0), ((a, b), 2, 0), (([a, b], [s]), 2, 1),
        (([a], [every]), 1, 1), ({"optimizer": a}, 1, 0),
        ({"optimizer": a, "lr_scheduler": s}, 1, 1),
        ({"optimizer": a, "lr_scheduler": every}, 1, 1),
        ({"optimizer": a, "lr_scheduler": plateau, "monitor": "x"}, 1, 1),
        (({"optimizer": a, "lr_scheduler": s}, {"optimizer": b}), 2, 1),
    ]  # fmt: skip


def test_all_forms_of_optimizers():
    for given, optimizers, schedules in forms():
        found = optimizers_of(given)
        assert (len(found.optimizers), len(found.schedules)) == (optimizers, schedules)
    assert found.schedules[0].interval == "epoch"
    w = nn.Parameter(wf.ones(1))
    a = wf.optim.SGD([w], lr=1.0)
    plateau = wf.optim.lr_scheduler.ReduceLROnPlateau(a)
    for wrong, text in (
        ([3], "got int"),
        ({"optimizer": a, "lr_scheduler": {"scheduler": plateau}}, "needs the name of a metric"),
        ({"optimizer": a, "lr_scheduler": {"scheduler": plateau, "every": 1}}, "any of"),
        ({"optimizer": a, "lr_scheduler": {"scheduler": 1, "interval": "day"}}, "got 'day'"),
    ):
        with pytest.raises(ArgumentError, match=text):
            optimizers_of(wrong)


def rates(schedule, epochs=3, count=4, **options):
    """The rate that each step is made with."""
    seen = []

    class Watched(Classifier):
        def training_step(self, batch, batch_idx):
            seen.append(self.optimizers().param_groups[0]["lr"])
            return super().training_step(batch, batch_idx)

        def configure_optimizers(self):
            optimizer = wf.optim.SGD(self.parameters(), lr=1.0)
            return {"optimizer": optimizer, "lr_scheduler": schedule(optimizer)}

        def on_train_epoch_end(self):
            self.log("figure", 1.0)

    quiet(max_epochs=epochs, **options).fit(Watched(), batches(count))
    return seen


def test_when_schedules_step():
    step = wf.optim.lr_scheduler.StepLR
    halved = {"gamma": 0.5, "step_size": 1}
    assert rates(lambda o: step(o, **halved)) == [1.0] * 4 + [0.5] * 4 + [0.25] * 4
    every = {"interval": "step", "frequency": 2}
    found = rates(lambda o: {"scheduler": step(o, **halved), **every}, epochs=1)
    assert found == [1, 1, 0.5, 0.5]
    found = rates(
        lambda o: {"scheduler": step(o, **halved), "interval": "step"}, 1,
        accumulate_grad_batches=2,
    )  # fmt: skip
    assert found == [1, 1, 0.5, 0.5]
    plateau = wf.optim.lr_scheduler.ReduceLROnPlateau
    found = rates(
        lambda o: {"scheduler": plateau(o, factor=0.5, patience=0), "monitor": "figure"}, 4, 1
    )
    assert found == [1.0, 1.0, 0.5, 0.25]


def test_manual_optimization_of_two_models():
    class Game(wf.train.Module):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.one, self.two = nn.Linear(3, 1), nn.Linear(3, 1)
            self.grads = []

        def training_step(self, batch, batch_idx):
            x, _ = batch
            for number, optimizer in enumerate(self.optimizers()):
                self.toggle_optimizer(optimizer)
                loss = (self.one(x) + self.two(x) - number).square().mean()
                self.manual_backward(loss)
                self.grads.append([p.grad is not None for p in self.parameters()])
                optimizer.step()
                optimizer.zero_grad()
                self.untoggle_optimizer(optimizer)
            for schedule in [self.lr_schedulers()]:
                schedule.step()

        def configure_optimizers(self):
            both = [wf.optim.SGD(m.parameters(), lr=0.1) for m in (self.one, self.two)]
            return both, [wf.optim.lr_scheduler.StepLR(both[0], 1)]

    module = Game()
    trainer = quiet()
    trainer.fit(module, batches(3))
    assert trainer.global_step == 6
    assert module.grads == [[True, True, False, False], [False, False, True, True]] * 3
    assert all(p.requires_grad for p in module.parameters())
    assert trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(1e-4)


def test_lbfgs_by_its_closure():
    class Quadratic(wf.train.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(wf.tensor([5.0, -3.0]))

        def training_step(self, batch, batch_idx):
            return ((self.w - batch) ** 2 * wf.tensor([1.0, 10.0])).sum()

        def configure_optimizers(self):
            return wf.optim.LBFGS(self.parameters(), line_search_fn="strong_wolfe")

    module = Quadratic()
    trainer = quiet()
    trainer.fit(module, [wf.tensor([1.0, 2.0])] * 3)
    np.testing.assert_allclose(weights(module), [1, 2], atol=1e-4)
    assert trainer.global_step == 3
    with pytest.raises(ArgumentError, match="must be 1, got 2"):
        quiet(accumulate_grad_batches=2).fit(Quadratic(), [wf.ones(2)])
    with pytest.raises(ArgumentError, match="bf16-mixed"):
        quiet(precision="16-mixed").fit(Quadratic(), [wf.ones(2)])


def test_several_optimizers_need_manual_optimization():
    class Two(Classifier):
        def configure_optimizers(self):
            layers = self.layers
            return [wf.optim.SGD(layers[i].parameters(), lr=0.1) for i in (0, 3)]

    with pytest.raises(ArgumentError, match=r"self\.automatic_optimization = False"):
        quiet().fit(Two(), batches(1))


def test_hooks_that_change_what_the_trainer_does():
    calls = []

    class Own(Classifier):
        def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):
            calls.append("step")
            if batch_idx == 1:
                optimizer_closure()  # gradients, but no update
            else:
                super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)

        def backward(self, loss):
            calls.append("backward")
            super().backward(2 * loss)

        def configure_gradient_clipping(self, optimizer, gradient_clip_val, algorithm):
            calls.append("clip")
            self.clip_gradients(optimizer, 0.5, "value")

    trainer = quiet()
    trainer.fit(Own(), batches(3))
    assert calls == ["step", "backward", "clip"] * 3 and trainer.global_step == 2


def test_a_step_without_a_loss_changes_nothing():
    class Picky(Classifier):
        def training_step(self, batch, batch_idx):
            return super().training_step(batch, batch_idx) if batch_idx == 1 else None

    module, trainer = Picky(), quiet()
    trainer.fit(module, batches(3))
    assert trainer.global_step == 1


class Digits(wf.train.DataModule):
    def __init__(self):
        self.calls = []

    def prepare_data(self):
        self.calls.append("prepare")

    def setup(self, stage):
        self.calls.append(stage)

    def teardown(self, stage):
        self.calls.append(f"end {stage}")

    def train_dataloader(self):
        return [(x.numpy(), {"y": y.numpy()}) for x, y in batches(3)]

    def val_dataloader(self):
        return self.train_dataloader()

    def test_dataloader(self):
        return self.train_dataloader()


def test_a_data_module_and_nested_batches():
    class Nested(Classifier):
        def training_step(self, batch, batch_idx):
            return super().training_step((batch[0], batch[1]["y"]), batch_idx)

        def validation_step(self, batch, batch_idx):
            assert isinstance(batch[1]["y"], wf.Tensor)
            super().validation_step((batch[0], batch[1]["y"]), batch_idx)

        def test_step(self, batch, batch_idx):
            self.log("test_loss", F.cross_entropy(self(batch[0]), batch[1]["y"]))

    data, module = Digits(), Nested()
    trainer = quiet()
    trainer.fit(module, datamodule=data)
    (found,) = trainer.test(module, datamodule=data)
    assert data.calls == ["prepare", "fit", "end fit", "prepare", "test", "end test"]
    assert math.isfinite(found["test_loss"])


def test_loaders_with_pytorchs_names():
    x, y = (np.concatenate([t.numpy() for t in part]) for part in zip(*batches(5), strict=True))
    dataset = wf.utils.data.TensorDataset(wf.tensor(x), wf.tensor(y))
    loader = wf.utils.data.DataLoader(dataset, batch_size=8, shuffle=True)
    module, trainer = Classifier(), quiet(max_epochs=2)
    trainer.fit(module, loader, wf.utils.data.DataLoader(dataset, batch_size=20))
    assert trainer.global_step == 6 and trainer.num_training_batches == 3
    assert trainer.estimated_stepping_batches == 6


class Pair(wf.train.Strategy):
    """Two ranks, of which the other has what this one has, and twice that."""

    world_size = 2

    def gather(self, value):
        if isinstance(value, tuple):
            total, weight = value
            return [value, (2 * total, weight)]
        return [value, value]


def test_figures_of_several_ranks():
    class Logged(Classifier):
        def training_step(self, batch, batch_idx):
            for how in ("mean", "sum", "max"):
                self.log(how, float(batch_idx + 1), False, on_step=False, on_epoch=True,
                         reduce_fx=how, sync_dist=True)  # fmt: skip
            self.log("own", 1.0, on_step=False, on_epoch=True)
            self.mean.update(float(batch_idx))
            self.log("metric", self.mean, on_step=False, on_epoch=True)
            return super().training_step(batch, batch_idx)

    module = Logged()
    module.mean = wf.metrics.Mean()
    trainer = quiet(strategy=Pair())
    trainer.fit(module, batches(3))
    found = {k: v.item() for k, v in trainer.callback_metrics.items() if not k.startswith("loss")}
    assert found == {"mean": 3.0, "sum": 18.0, "max": 6.0, "own": 1.0, "metric": 1.0}
