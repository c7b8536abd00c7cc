"""The training loop: limits, validation, accumulation, logging, resuming, stopping."""

import csv
import doctest
import importlib
import math
import pkgutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.eager.record.run import program
from weft.errors import ArgumentError, DataError, OutOfRangeError, StateError, UnknownKeyError
from weft.train import callbacks as c
from weft.train.optimizers import optimizers_of

from .line import Classifier, batches, quiet, weights

MODULES = [m.name for m in pkgutil.walk_packages(wf.train.__path__, "weft.train.")]


@pytest.mark.parametrize("name", ["weft.train", *MODULES])
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


class Counted(Classifier):
    """Notes the batches that it sees."""

    def __init__(self):
        super().__init__(dropout=0.0)
        self.seen = []

    def training_step(self, batch, batch_idx):
        self.seen.append(f"{self.current_epoch}.{batch_idx}")
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        self.seen.append(f"v{batch_idx}")
        return super().validation_step(batch, batch_idx)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_epochs": 2}, "v0 v1 0.0 0.1 0.2 0.3 v0 v1 1.0 1.1 1.2 1.3 v0 v1"),
        ({"max_steps": 5, "max_epochs": -1, "num_sanity_val_steps": 0},
         "0.0 0.1 0.2 0.3 v0 v1 1.0"),
        ({"limit_train_batches": 0.5, "limit_val_batches": 1}, "v0 0.0 0.1 v0"),
        ({"limit_val_batches": 0}, "0.0 0.1 0.2 0.3"),
        ({"val_check_interval": 0.5, "num_sanity_val_steps": 1, "limit_val_batches": 1},
         "v0 0.0 0.1 v0 0.2 0.3 v0"),
        ({"val_check_interval": 3, "check_val_every_n_epoch": None, "max_epochs": 2,
          "num_sanity_val_steps": 0, "limit_val_batches": 1},
         "0.0 0.1 0.2 v0 0.3 1.0 1.1 v0 1.2 1.3"),
        ({"check_val_every_n_epoch": 2, "max_epochs": 3, "num_sanity_val_steps": 0,
          "limit_train_batches": 1, "limit_val_batches": 1}, "0.0 1.0 v0 2.0"),
        ({"fast_dev_run": True}, "0.0 v0"),
        ({"fast_dev_run": 2}, "0.0 0.1 v0 v1"),
        ({"overfit_batches": 1, "max_epochs": 2, "num_sanity_val_steps": 0}, "0.0 v0 1.0 v0"),
    ],
)  # fmt: skip
def test_limits(options, expected):
    module = Counted()
    quiet(**options).fit(module, batches(4), batches(2))
    assert " ".join(module.seen) == expected


def test_a_loader_without_length():
    class Endless:
        def __iter__(self):
            return iter(batches(3))

    module = Counted()
    trainer = quiet(max_epochs=2, accumulate_grad_batches=2, num_sanity_val_steps=0)
    trainer.fit(module, Endless(), batches(1))
    assert " ".join(module.seen) == "0.0 0.1 0.2 v0 1.0 1.1 1.2 v0"
    assert trainer.global_step == 4
    with pytest.raises(ArgumentError, match=r"as the loader has no length, got 0\.5"):
        quiet(limit_train_batches=0.5).fit(module, Endless())


def test_hooks_can_stop():
    class Stopping(Counted):
        def on_train_batch_start(self, batch, batch_idx):
            return -1 if batch_idx == 1 else None

        def on_train_epoch_end(self):
            self.trainer.should_stop |= self.current_epoch == 1

    module = Stopping()
    quiet(max_epochs=9, min_epochs=4).fit(module, batches(4))
    assert module.seen == ["0.0", "1.0", "2.0", "3.0"]


# -- gradients


class Exact(wf.train.Module):
    """Whole numbers, so that sums are exact in any order."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1, bias=False)
        nn.init.zeros_(self.layer.weight)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = ((self.layer(x) - y) ** 2).mean()
        return {"loss": loss}

    def configure_optimizers(self):
        return wf.optim.SGD(self.parameters(), lr=0.5)


def test_accumulated_uneven_batches_are_one_batch_bitwise():
    rng = np.random.default_rng(0)
    x = wf.tensor(rng.integers(-8, 8, (16, 2)), dtype=wf.float32)
    y = wf.tensor(rng.integers(-8, 8, (16, 1)), dtype=wf.float32)
    whole, parts = Exact(), Exact()
    quiet().fit(whole, [(x, y)])
    cuts = [(0, 4), (4, 6), (6, 8), (8, 16)]
    trainer = quiet(accumulate_grad_batches=4)
    trainer.fit(parts, [(x[i:j], y[i:j]) for i, j in cuts])
    assert trainer.global_step == 1
    assert weights(parts).tolist() == weights(whole).tolist() != [0.0, 0.0]


def test_items_that_are_no_rows():
    class Tokens(Exact):
        def training_step(self, batch, batch_idx):
            x, y, mask = batch
            losses = (self.layer(x) - y)[:, 0] ** 2
            return {"loss": (losses * mask).sum() / mask.sum(), "items": float(mask.sum())}

    rng = np.random.default_rng(1)
    x = wf.tensor(rng.integers(-8, 8, (8, 2)), dtype=wf.float32)
    y = wf.tensor(rng.integers(-8, 8, (8, 1)), dtype=wf.float32)
    mask = wf.tensor([1.0, 0, 0, 0, 1, 1, 0, 1])
    whole, parts = Tokens(), Tokens()
    quiet().fit(whole, [(x, y, mask)])
    quiet(accumulate_grad_batches=2).fit(
        parts, [(x[:4], y[:4], mask[:4]), (x[4:], y[4:], mask[4:])]
    )
    np.testing.assert_allclose(weights(parts), weights(whole), rtol=1e-6)


@pytest.mark.parametrize("algorithm", ["norm", "value"])
def test_clipping(algorithm):
    module = Exact()
    trainer = quiet(gradient_clip_val=0.25, gradient_clip_algorithm=algorithm)
    x, y = wf.tensor([[3.0, 4.0]]), wf.tensor([[10.0]])
    trainer.fit(module, [(x, y)])
    expected = [0.075, 0.1] if algorithm == "norm" else [0.125, 0.125]
    np.testing.assert_allclose(weights(module), expected, rtol=1e-5)


@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed", "64-true"])
def test_precision(precision):
    module = Classifier(dropout=0.0)
    trainer = quiet(precision=precision, max_epochs=3, accumulate_grad_batches=2)
    trainer.fit(module, batches(4))
    assert np.isfinite(weights(module)).all() and trainer.global_step == 6
    assert module.layers[0].weight.dtype is (wf.float64 if precision[:2] == "64" else wf.float32)


def test_a_step_is_one_program(monkeypatch):
    seen = []
    recurring = program.recurring
    monkeypatch.setattr(program, "recurring", lambda records: seen.append(1) or recurring(records))
    counts = []

    class Watched(Classifier):
        def __init__(self):
            super().__init__()
            self.metric = wf.metrics.Accuracy()

        def training_step(self, batch, batch_idx):
            self.metric.update(self(batch[0]), batch[1])
            self.log("accuracy", self.metric, on_step=False, on_epoch=True)
            return super().training_step(batch, batch_idx)

        def on_train_batch_start(self, batch, batch_idx):
            counts.append(len(seen))

    quiet(max_epochs=2, gradient_clip_val=1.0, callbacks=[c.EMA()]).fit(Watched(), batches(10))
    assert np.diff(counts[2:10]).tolist() == [1] * 7
    assert np.diff(counts[12:]).tolist() == [1] * 7


# -- logging


def test_figures_of_epochs_are_weighted_by_batch_size():
    class Logged(Exact):
        def training_step(self, batch, batch_idx):
            x, _ = batch
            for how in ("mean", "sum", "min", "max"):
                self.log(how, x.mean(), on_step=False, on_epoch=True, reduce_fx=how)
            self.log("both", x.mean(), on_epoch=True)
            self.log("sized", float(batch_idx), on_step=False, on_epoch=True, batch_size=1)
            return super().training_step(batch, batch_idx)

    x = wf.arange(12, dtype=wf.float32).reshape(6, 2)
    y = wf.zeros(6, 1)
    trainer = quiet()
    trainer.fit(Logged(), [(x[:4], y[:4]), (x[4:], y[4:])])
    found = {k: v.item() for k, v in trainer.callback_metrics.items()}
    assert found == {
        "mean": 5.5, "sum": 13.0, "min": 3.5, "max": 9.5, "both": 5.5, "both_epoch": 5.5,
        "both_step": 9.5, "sized": 0.5,
    }  # fmt: skip


def test_a_table_of_figures(tmp_path):
    logger = wf.train.loggers.CSVLogger(tmp_path, flush_logs_every_n_steps=2)
    trainer = quiet(logger=logger, log_every_n_steps=2, max_epochs=2)
    trainer.fit(Classifier(), batches(4), batches(2))
    with open(f"{logger.log_dir}/metrics.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["1", "3", "5", "7"]
    assert all(float(row["loss_step"]) > 0 for row in rows)
    assert [bool(row["val_loss"]) for row in rows] == [False, True, False, True]
    assert np.float32(rows[-1]["loss_epoch"]) == trainer.callback_metrics["loss"].item()
    assert wf.train.loggers.CSVLogger(tmp_path).version == 1
    assert "lr: 0.05" in Path(logger.log_dir, "hparams.yaml").read_text()


def test_evaluation_over_several_loaders_and_predictions():
    class Several(Classifier):
        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            super().validation_step(batch, batch_idx)

    module = Several()
    trainer = quiet()
    found = trainer.validate(module, [batches(2, seed=1), batches(2, seed=2)])
    assert [sorted(f) for f in found] == [
        [f"val_accuracy/dataloader_idx_{i}", f"val_loss/dataloader_idx_{i}"] for i in range(2)
    ]
    assert module.training
    outputs = trainer.predict(module, batches(3))
    assert [tuple(y.shape) for y in outputs] == [(4, 2)] * 3
    with pytest.raises(ArgumentError, match=r"Trainer.test: expected dataloaders"):
        trainer.test(module)


# -- going on


class Stop(c.Callback):
    """Saves at a step, and stops."""

    def __init__(self, path, step, count=lambda trainer: trainer.global_step):
        self.path, self.step, self.count = path, step, count

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if self.count(trainer) == self.step:
            trainer.save_checkpoint(self.path)
            trainer.should_stop = True


class Shuffled:
    """Draws an order from the process's random numbers."""

    def __init__(self, count):
        self.batches = batches(count)

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        return iter([self.batches[i] for i in wf.randperm(len(self.batches)).tolist()])


def resumed(tmp_path, step, loader, **options):
    """Weights and figures at once, and in two parts."""
    found = []
    for parts in (1, 2):
        wf.train.seed_everything(3)
        module = Classifier()
        common = {"max_epochs": 3, **options}
        if parts == 2:
            path = tmp_path / f"{step}.safetensors"
            stop = Stop(path, step)
            quiet(callbacks=[c.EMA(0.9), stop], **common).fit(module, loader(), batches(2))
            wf.train.seed_everything(99)
            module = Classifier()
            trainer = quiet(callbacks=[c.EMA(0.9), Stop(path, -1)], **common)
            trainer.fit(module, loader(), batches(2), ckpt_path=path)
        else:
            trainer = quiet(callbacks=[c.EMA(0.9)], **common)
            trainer.fit(module, loader(), batches(2))
        found.append((weights(module), trainer.callback_metrics, trainer.global_step))
    return found


def test_what_continues_is_bitwise_what_was_not_interrupted(tmp_path):
    for step in (3, 5, 7, 12):
        (a, figures, steps), (b, others, same) = resumed(tmp_path, step, lambda: Shuffled(5))
        assert steps == same == 15
        np.testing.assert_array_equal(a, b)
        assert {k: v.item() for k, v in figures.items()} == {k: v.item() for k, v in others.items()}


def test_a_pipeline_keeps_its_own_place(tmp_path):
    def loader():
        x = np.random.default_rng(0).standard_normal((22, 3)).astype(np.float32)
        y = (x[:, 0] > 0).astype(np.int64)
        return wf.data.Dataset.from_tensor_slices((x, y)).shuffle(22, seed=1).batch(4)

    for step in (4, 6, 9):
        (a, _, steps), (b, _, same) = resumed(tmp_path, step, loader)
        assert steps == same == 18
        np.testing.assert_array_equal(a, b)


def test_a_window_that_was_open_continues(tmp_path):
    for cut in (1, 3):
        found = []
        for parts in (1, 2):
            wf.train.seed_everything(0)
            module = Classifier()
            options = {"accumulate_grad_batches": 4}
            if parts == 2:
                stop = Stop(tmp_path / "open", cut + 1, lambda t: t.progress.batch)
                quiet(callbacks=stop, **options).fit(module, batches(8))
                module = Classifier()
                quiet(**options).fit(module, batches(8), ckpt_path=tmp_path / "open")
            else:
                quiet(**options).fit(module, batches(8))
            found.append(weights(module))
        np.testing.assert_array_equal(*found)


def test_states_that_do_not_fit(tmp_path):
    trainer = quiet()
    trainer.fit(Classifier(), batches(1))
    trainer.save_checkpoint(tmp_path / "weights", weights_only=True)
    trainer.save_checkpoint(tmp_path / "all")
    with pytest.raises(StateError, match="got weights alone"):
        quiet().fit(Classifier(), batches(1), ckpt_path=tmp_path / "weights")
    with pytest.raises(DataError, match="expected a file, got"):
        quiet().fit(Classifier(), batches(1), ckpt_path=tmp_path / "absent")
    wf.save({"a": 1}, tmp_path / "other")
    with pytest.raises(DataError, match="a state that a trainer saved"):
        quiet().fit(Classifier(), batches(1), ckpt_path=tmp_path / "other")
    found = Classifier.load_from_checkpoint(tmp_path / "weights")
    np.testing.assert_array_equal(weights(found), weights(trainer.module))
    assert found.hparams == {"lr": 0.05, "dropout": 0.2}


# -- ends


def test_ctrl_c_finishes_the_step_saves_and_tells_how_to_continue(tmp_path, capsys):
    class Interrupted(Classifier):
        def training_step(self, batch, batch_idx):
            if self.global_step == 6:
                signal.raise_signal(signal.SIGINT)
            return super().training_step(batch, batch_idx)

    found = []
    options = {"max_epochs": 2, "default_root_dir": tmp_path}
    for kind in (Classifier, Interrupted):
        wf.train.seed_everything(0)
        module = kind()
        if kind is Interrupted:
            trainer = quiet(**options)
            with pytest.raises(KeyboardInterrupt):
                trainer.fit(module, batches(5), batches(1))
            assert trainer.global_step == 7
            text = capsys.readouterr().err
            assert "stopped at step 7, in epoch 1; to go on: trainer.fit(model, ..., ckpt" in text
            module = Classifier()
            path = text.split("ckpt_path='")[1].split("'")[0]
            quiet(**options).fit(module, batches(5), batches(1), ckpt_path=path)
        else:
            quiet(**options).fit(module, batches(5), batches(1))
        found.append(weights(module))
    np.testing.assert_array_equal(*found)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_thread_has_no_ctrl_c():
    module = Classifier()
    thread = threading.Thread(target=lambda: quiet().fit(module, batches(2)))
    thread.start()
    thread.join()
    assert thread.is_alive() is False and np.isfinite(weights(module)).all()


def test_an_update_that_is_taken_back_is_not_counted():
    data = batches(4)
    data[2] = (data[2][0], wf.tensor([0, 1, 7, 0]))  # no such class: found one step later
    trainer, module = quiet(), Classifier(dropout=0.0)
    with pytest.raises(OutOfRangeError):
        trainer.fit(module, data)
    assert trainer.global_step == 2
    other = Classifier(dropout=0.0)
    other.load_state_dict(module.state_dict())
    np.testing.assert_array_equal(weights(other), weights(module))


def test_nan_ends_the_run_with_a_report():
    data = batches(8)
    data[5] = (wf.tensor([[math.nan, 0, 0]] * 4), data[5][1])
    trainer = quiet()
    with pytest.raises(wf.train.NonFiniteLossError, match="the loss of batch 5 is NaN") as caught:
        trainer.fit(Classifier(), data)
    assert "find_nan" in str(caught.value) and "was given to" in str(caught.value)
    quiet(stop_on_nan=False).fit(Classifier(), data)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: quiet(precision="8"), ArgumentError, "expected precision of"),
        (lambda: quiet(devices=2), ArgumentError, "expected devices 1"),
        (lambda: quiet(accelerator="gpu"), ArgumentError, "expected accelerator 'cpu'"),
        (lambda: quiet(gradient_clip_algorithm="l2"), ArgumentError, "'norm' or 'value'"),
        (lambda: quiet(val_check_interval=1.5), ArgumentError, "val_check_interval as a part"),
        (lambda: quiet(accumulate_grad_batches=0), ArgumentError, "from 1 on"),
        (lambda: quiet().fit(nn.Linear(1, 1), []), ArgumentError, r"weft.train.fit\(model"),
        (lambda: quiet().fit(Classifier()), ArgumentError, "expected train_dataloaders"),
        (lambda: quiet().fit(Classifier(), iter([])), DataError, "an empty loader"),
        (lambda: quiet(limit_train_batches=-1).fit(Classifier(), batches(1)), ArgumentError,
         "limit_train_batches"),
        (lambda: quiet(val_check_interval=5).fit(Classifier(), batches(2), batches(1)),
         ArgumentError, "up to the 2 batches"),
        (lambda: quiet(callbacks=c.EarlyStopping("f1")).fit(Classifier(), batches(1)),
         UnknownKeyError, "expected the metric 'f1' to be logged"),
        (lambda: Classifier().trainer, StateError, "expected a trainer"),
        (lambda: optimizers_of(3), ArgumentError, "expected an optimizer"),
        (lambda: optimizers_of({"lr": 1}), ArgumentError, r"got \['lr'\]"),
    ],
)  # fmt: skip
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()
