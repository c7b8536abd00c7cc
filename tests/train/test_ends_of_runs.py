"""Whatever ends a run, its last state is saved; metrics are known to callbacks in time."""

import csv
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft.errors import ArgumentError, StateError, UnknownKeyError
from weft.train import callbacks as c
from weft.train.saving import read

from .line import quiet, weights

X = [wf.tensor(np.random.default_rng(i).normal(size=(4, 2)).astype("f4")) for i in range(6)]


class Figures(wf.train.Module):
    """Logs figures by update: "vl" in validation, "tl" of epochs, "ts" of steps and epochs."""

    def __init__(self, figures=(5.0, 4.0, 3.0, 2.0), **hooks):
        super().__init__()
        self.layer = wf.nn.Linear(2, 1)
        self.figures = figures
        self.rates = []
        for name, hook in hooks.items():
            setattr(self, name, hook)

    def training_step(self, batch, batch_idx):
        loss = (self.layer(batch) ** 2).mean()
        self.log("tl", loss, on_step=False, on_epoch=True)
        self.log("ts", float(self.global_step), on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("vl", self.figures[(self.global_step // 2 - 1) % len(self.figures)])

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])

    def configure_optimizers(self):
        return wf.optim.SGD(self.parameters(), lr=0.1)


def check_last(save, trainer, module):
    state = read(save.last_model_path)
    assert state["global_step"] == trainer.global_step > 0
    saved = np.concatenate([x.numpy().ravel() for x in state["state_dict"].values()])
    np.testing.assert_array_equal(saved, weights(module))


class Stops(c.Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        trainer.should_stop = trainer.global_step == 3


@pytest.mark.parametrize(
    ("options", "hooks", "validates"),
    [
        ({"max_steps": 3, "max_epochs": None}, {}, True),
        ({"limit_val_batches": 0}, {}, True),
        ({}, {"validation_step": None}, True),
        ({}, {}, False),
        ({}, {"on_train_batch_start": lambda batch, i: -1 if i == 2 else None}, True),
        ({"max_steps": 5, "val_check_interval": 6}, {}, True),
    ],
)
@pytest.mark.parametrize("every", [None, 2])
def test_a_metric_that_was_not_logged_yet_is_a_warning(tmp_path, options, hooks, validates, every):
    save = c.ModelCheckpoint(tmp_path, monitor="vl", every_n_train_steps=every)
    callbacks = [*options.get("callbacks", []), save]
    trainer, module = quiet(**{**options, "callbacks": callbacks}), Figures(**hooks)
    with pytest.warns(UserWarning, match="ModelCheckpoint: expected the metric 'vl'"):
        trainer.fit(module, X, X[:2] if validates else None)
    check_last(save, trainer, module)
    assert save.best_model_path == ""


@pytest.mark.parametrize(("options", "step"), [({"max_time": 0.0}, 1), ({}, 3)])
def test_a_stop_within_an_epoch_is_validated_first(tmp_path, options, step):
    save = c.ModelCheckpoint(tmp_path, "{step}", monitor="vl")
    trainer, module = quiet(callbacks=[Stops(), save], **options), Figures()
    trainer.fit(module, X, X[:2])
    assert (trainer.global_step, save.best_model_path) == (
        step,
        str(tmp_path / f"step={step}.ckpt"),
    )
    check_last(save, trainer, module)


class Planted(Exception):
    pass


class Raises(c.Callback):
    """Raises in an event."""

    def __init__(self, event):
        self.event = event
        setattr(self, event, self.fail)

    def fail(self, *args):
        if self.event == "state_dict" or args[0].global_step >= 4:
            raise Planted(self.event)


class FullDisk(wf.train.loggers.Logger):
    def log_metrics(self, metrics, step=None):
        if step is not None and step >= 4:
            raise OSError(28, "No space left on device")

    def finalize(self, status):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("callbacks", "options", "error"),
    [
        ([Raises("on_train_batch_end")], {}, Planted),
        ([Raises("on_validation_start")], {}, Planted),
        ([Raises("on_validation_end"), c.EMA(0.5)], {}, Planted),
        ([Raises("on_train_epoch_end")], {}, Planted),
        ([Raises("on_train_end")], {}, Planted),
        ([Raises("on_fit_end")], {}, Planted),
        ([Raises("teardown")], {}, Planted),
        ([Raises("on_train_end"), Raises("on_exception"), Raises("teardown")], {}, Planted),
        ([], {"logger": FullDisk(), "log_every_n_steps": 1}, OSError),
        ([c.EarlyStopping("f1")], {}, UnknownKeyError),
    ],
)
def test_an_error_outside_of_steps_comes_after_the_last_state_is_saved(
    tmp_path, callbacks, options, error
):
    save = c.ModelCheckpoint(tmp_path, every_n_train_steps=100)
    trainer = quiet(callbacks=[*callbacks, save], **options)
    module = Figures()
    with pytest.raises(error):
        trainer.fit(module, X, X[:2])
    check_last(save, trainer, module)
    again = quiet(max_epochs=2, callbacks=[c.ModelCheckpoint(tmp_path)])
    again.fit(Figures(), X, X[:2], ckpt_path="last")
    assert again.global_step == 12


def test_a_callback_whose_state_cannot_be_saved_is_left_out(tmp_path):
    save = c.ModelCheckpoint(tmp_path)
    trainer, module = quiet(callbacks=[Raises("state_dict"), save]), Figures()
    with (
        pytest.warns(UserWarning, match="a part is left out, as its state raised Planted"),
        pytest.raises(Planted),
    ):
        trainer.fit(module, X)
    check_last(save, trainer, module)


def test_nothing_is_saved_of_a_step_that_failed(tmp_path):
    class Broken(Figures):
        def training_step(self, batch, batch_idx):
            if batch_idx == 4:
                raise Planted
            return super().training_step(batch, batch_idx)

    save = c.ModelCheckpoint(tmp_path, every_n_train_steps=2)
    with pytest.raises(Planted):
        quiet(callbacks=save).fit(Broken(), X)
    assert Path(save.last_model_path).name == "epoch=0-step=4.ckpt"


def test_the_best_is_that_of_its_own_validation(tmp_path):
    save = c.ModelCheckpoint(tmp_path, "{step}", monitor="vl", every_n_train_steps=2)
    trainer, module = quiet(callbacks=save, val_check_interval=2), Figures((5.0, 1.0, 3.0))
    trainer.fit(module, X, X[:1])
    assert (Path(save.best_model_path).name, save.best_model_score) == ("step=4.ckpt", 1.0)
    save = c.ModelCheckpoint(tmp_path / "3", "{step}", monitor="vl", every_n_train_steps=3)
    quiet(callbacks=save, val_check_interval=2).fit(Figures((5.0, 1.0, 3.0)), X, X[:1])
    # saved at 3 and 6, and after the validation at 4, whose metric no checkpoint had
    assert (Path(save.best_model_path).name, save.best_model_score) == ("step=4.ckpt", 1.0)


def test_metrics_of_training_epochs_are_known_in_time(tmp_path):
    seen = []

    class Noted(Figures):
        def on_validation_end(self):
            seen.append(float(self.trainer.callback_metrics["ts"].item()))

    stop = c.EarlyStopping("tl", patience=1, min_delta=1e9)
    save = c.ModelCheckpoint(tmp_path, monitor="tl")
    options = {"callbacks": [stop, save], "max_epochs": 5, "num_sanity_val_steps": 0}
    trainer, module = quiet(**options), Noted()
    trainer.fit(module, X, X[:1])
    assert trainer.current_epoch == 2 and stop.stopped_epoch == 1
    assert seen == [5.0, 11.0]  # the last step's, until the epoch's is known
    assert trainer.callback_metrics["ts"].item() == np.mean(range(6, 12))
    assert save.best_model_path.endswith("step=12.ckpt")


def scheduled(make, **options):
    class Scheduled(Figures):
        def configure_optimizers(self):
            optimizer = super().configure_optimizers()
            return {
                "optimizer": optimizer,
                "lr_scheduler": {"scheduler": make(optimizer), **options},
            }

    return Scheduled


def test_rates_are_those_of_lightning():
    kinds = wf.optim.lr_scheduler
    leave = {"on_train_batch_start": lambda batch, i: -1 if i == 1 else None}
    module = scheduled(lambda o: kinds.StepLR(o, 1, 0.5))(**leave)
    quiet(max_epochs=3).fit(module, X)
    assert module.trainer.optimizers[0].param_groups[0]["lr"] == 0.0125
    plateau = scheduled(
        lambda o: kinds.ReduceLROnPlateau(o, patience=1), monitor="vl", interval="step"
    )
    module = plateau((1.0,))
    trainer = quiet(max_epochs=2, val_check_interval=3)
    trainer.fit(module, X, X[:1])
    assert module.rates == [0.1] * 9 + [pytest.approx(0.01)] * 3  # after the third validation


def test_averages_start_where_lightnings_do():
    class Plain(Figures):  # without forward
        def __init__(self):
            super().__init__()
            self.norm = wf.nn.BatchNorm1d(2)

        def training_step(self, batch, batch_idx):
            return ((self.layer(self.norm(batch)) - 1) ** 2).mean()

        def configure_optimizers(self):
            return wf.optim.SGD(self.parameters(), lr=0.05)

    module = Plain()
    swa = c.StochasticWeightAveraging(0.01, 0.5, 2, "linear")
    quiet(max_epochs=8, callbacks=swa).fit(module, X[:3])
    assert module.rates[2::3] == pytest.approx([0.05, 0.05, 0.05, 0.03, 0.01, 0.01, 0.01, 0.01])
    assert swa.n_averaged == 5
    mean = np.mean([x.numpy().mean(0) for x in X[:3]], 0)
    np.testing.assert_allclose(module.norm.running_mean.numpy(), mean, rtol=1e-5)


@pytest.mark.parametrize("how", ["min", "max"])
@pytest.mark.parametrize("place", range(3))
def test_a_nan_stays(how, place):
    figures = [2.0, 1.0, 3.0]
    figures[place] = float("nan")

    class Reduced(Figures):
        def validation_step(self, batch, batch_idx):
            self.log("m", wf.tensor(figures[batch_idx]), reduce_fx=how)

    assert np.isnan(quiet().validate(Reduced(), X[:3])[0]["m"])


def test_ema_in_tests_and_after_loading(tmp_path):
    class Tested(Figures):
        def test_step(self, batch, batch_idx):
            self.log("w", self.layer.bias.detach().sum())

        def validation_step(self, batch, batch_idx):
            self.log("v", self.layer.bias.detach().sum())

    save = c.ModelCheckpoint(tmp_path)
    trainer, module = quiet(callbacks=[c.EMA(0.9, apply_at_end=False), save]), Tested()
    trainer.fit(module, X, X[:1])
    bias = module.layer.bias.item()
    average = trainer.callback_metrics["v"].item()
    assert trainer.test(module, X[:1])[0]["w"] == average != bias
    assert trainer.test(module, X[:1], ckpt_path="last")[0]["w"] == bias


def test_overfitting_validates_on_the_validation_data():
    seen = []

    class Noted(Figures):
        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            seen.append((dataloader_idx, [x is batch for x in X].index(True)))

    loaders = [dict.fromkeys(X[2:]).keys(), dict.fromkeys(X[4:]).keys()]
    quiet(overfit_batches=1, num_sanity_val_steps=0).fit(Noted(), X, loaders)
    assert seen == [(0, 2), (1, 4)]


def test_values_of_evaluation_steps_and_rates_are_logged(tmp_path):
    class Logged(Figures):
        def validation_step(self, batch, batch_idx):
            self.log("v", float(batch_idx), on_step=True, on_epoch=True)

    logger = wf.train.loggers.CSVLogger(tmp_path)
    trainer = quiet(logger=logger, callbacks=c.LearningRateMonitor("step"), log_every_n_steps=2)
    trainer.fit(Logged(), X, X[:3])
    with open(f"{logger.log_dir}/metrics.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(r["v_step"]) for r in rows if r["v_step"]] == [0, 1, 2]
    full = [(r["step"], r["lr-SGD"], r["ts_step"]) for r in rows if r["lr-SGD"]]
    assert full == [("1", "0.1", "1.0"), ("3", "0.1", "3.0"), ("5", "0.1", "5.0")]
    assert trainer.callback_metrics["lr-SGD"].item() == np.float32(0.1)


def manual(**options):
    module = Figures()
    module.automatic_optimization = False
    quiet(**options).fit(module, X)


def logs(value):
    class Logs(Figures):
        def training_step(self, batch, batch_idx):
            self.log("odd", value)

    quiet().fit(Logs(), X)


def given_later(name):
    setattr(quiet(), name, 1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: manual(gradient_clip_val=1.0), ArgumentError, "gradient_clip_val is of automatic"),
        (lambda: quiet(limit_val_batches=0.5).fit(Figures(), X, X[:1]), ArgumentError,
         "limit_val_batches of at least one of the 1 batches"),
        (lambda: logs(None), ArgumentError, "log: expected a number, .* for 'odd', got None"),
        (lambda: logs("a"), ArgumentError, "for 'odd', got 'a'"),
        (lambda: logs(np.ones(2)), ArgumentError, r"for 'odd', got shape \(2,\)"),
        (lambda: quiet(fast_dev_run=float("inf")), ArgumentError, "Trainer: expected fast_dev_run"),
        (lambda: quiet(log_every_n_steps=(0,)), ArgumentError, "expected log_every_n_steps"),
        (lambda: quiet(limit_train_batches="a"), ArgumentError, "expected limit_train_batches"),
        (lambda: quiet(val_check_interval=[]), ArgumentError, "expected val_check_interval"),
        (lambda: wf.train.seed_everything([]), ArgumentError, "seed_everything: expected seed"),
        (lambda: wf.train.seed_everything(-1.5), ArgumentError, "an integer, got -1.5"),
        (lambda: c.Timer(1.0).time_elapsed("predict"), ArgumentError, "Timer: expected stage"),
        (lambda: given_later("enable_checkpointing"), StateError, "Trainer.enable_checkpointing"),
        (lambda: quiet().test(Figures(test_step=None), X), ArgumentError, "define test_step"),
    ],
)  # fmt: skip
def test_errors_name_the_call_and_the_argument(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_settings_work_or_raise():
    trainer, module = quiet(), Figures(on_train_epoch_end=None)
    trainer.fit(module, X)
    trainer.fit_loop.max_epochs = 3
    trainer.limit_train_batches = 2
    trainer.fit(module, X)
    assert (trainer.current_epoch, trainer.global_step) == (3, 10)
    with pytest.raises(AttributeError):
        trainer.fit_loop.maximum = 3
    trainer.limit_val_batches = 0
    assert trainer.validate(module, X) == []

    class Data(wf.train.DataModule):
        def train_dataloader(self):
            return X

    trainer = quiet()
    trainer.fit(Figures(), Data())
    assert trainer.global_step == 6


def test_steps_given_to_the_object_are_run():
    seen = []
    module = Figures(validation_step=lambda batch, i: seen.append(i))
    quiet(num_sanity_val_steps=0).fit(module, X, X[:2])
    assert seen == [0, 1]


@pytest.mark.parametrize(
    ("kind", "options"),
    [("EarlyStopping", {"patience": 0, "restore_best_weights": True}),
     ("ReduceLROnPlateau", {"patience": 1, "factor": 0.5}),
     ("LearningRateScheduler", {"schedule": lambda epoch: 0.1 / (epoch + 1)})],
)  # fmt: skip
def test_callbacks_of_keras_on_graphs_change_the_model(kind, options):
    made = getattr(wf.tf1.keras.callbacks, kind)
    monitor = {} if kind == "LearningRateScheduler" else {"monitor": "loss", "min_delta": 1e9}
    model = wf.train.Model(wf.nn.Linear(2, 1))
    model.compile(lambda p: wf.optim.SGD(p, lr=0.1), "mse")
    x, y = np.ones((8, 2), "f4"), np.ones((8, 1), "f4")
    before = model.get_weights()
    history = model.fit(x, y, epochs=4, verbose=0, callbacks=[made(**monitor, **options)])
    if kind == "EarlyStopping":
        assert len(history.epoch) < 4
    else:
        assert model.get_learning_rate() == pytest.approx(0.0125 * (2 if kind[0] == "L" else 1))
    model.set_weights(before)
    for found, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(found, expected)


class Stream:
    """Batches without a number, of a loader that may keep its place."""

    def __init__(self, count):
        self.count, self.next = count, 0

    def __iter__(self):
        while self.next < self.count:
            self.next += 1
            yield X[self.next - 1]
        self.next = 0


class Resumable(Stream):
    def state_dict(self):
        return {"next": self.next}

    def load_state_dict(self, state):
        self.next = state["next"]


class Halving(Figures):
    def configure_optimizers(self):
        optimizer = super().configure_optimizers()
        schedule = wf.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule}}


@pytest.mark.parametrize("kind", [Stream, Resumable])
@pytest.mark.parametrize("steps", [3, 4, 5, 8])
def test_the_last_step_may_end_an_epoch_of_unknown_length(kind, steps, tmp_path):
    """Its schedule and validation come, and a later run goes on as if there had been no stop."""
    runs = []
    for limits in ([steps, 10], [10]):
        wf.manual_seed(0)
        module, folder, before = Halving(), tmp_path / str(len(limits)), None
        for number, limit in enumerate(limits):
            save = c.ModelCheckpoint(folder / str(number))
            trainer = quiet(
                max_steps=limit, max_epochs=-1, callbacks=[save], enable_checkpointing=True
            )
            trainer.fit(module, kind(4), [X[0]], ckpt_path=before)
            rate = trainer.optimizers[0].param_groups[0]["lr"]
            assert rate == 0.1 * 0.5 ** (limit // 4)
            before = save.last_model_path
            if not number:
                assert trainer.fit_loop.validations == -(-limit // 4) - (limit % 4 > 0)
        runs.append(weights(module))
    np.testing.assert_array_equal(*runs)


def test_a_metric_belongs_to_the_weights_until_the_next_update(tmp_path):
    """The epoch that is left after a batch without an update has the metric of the one before."""
    module = Figures((5.0, 4.0, 3.0))
    module.on_train_batch_start = lambda batch, i: -1 if (module.current_epoch, i) == (1, 1) else 0
    save = c.ModelCheckpoint(
        tmp_path,
        "{step}",
        monitor="vl",
        every_n_epochs=2,
        save_on_train_epoch_end=True,
        save_top_k=-1,
    )
    trainer = quiet(
        max_epochs=4, accumulate_grad_batches=3, callbacks=[save], enable_checkpointing=True,
        val_check_interval=0.5,
    )  # fmt: skip
    trainer.fit(module, X, [X[0]])
    names = ["step=2.ckpt", "step=6.ckpt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert save.best_model_score == 3.0


def test_an_update_after_the_last_batch_is_saved(tmp_path):
    save = c.ModelCheckpoint(tmp_path)
    module = Figures()
    trainer = quiet(
        max_epochs=1, accumulate_grad_batches=3, callbacks=[save], enable_checkpointing=True,
        val_check_interval=2, check_val_every_n_epoch=None,
    )  # fmt: skip
    trainer.fit(module, Stream(2), [X[0]])
    check_last(save, trainer, module)
