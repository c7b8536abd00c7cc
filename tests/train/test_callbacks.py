"""Callbacks: saving, stopping, averaging, rates, timing, progress bars."""

import contextlib
import csv
import io
import json
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import yaml
from rich.console import Console

import weft as wf
from weft.errors import ArgumentError, DataError, UnknownKeyError
from weft.train import callbacks as c
from weft.train.utilities.throughput import Throughput

from .line import Classifier, batches, quiet, weights


def test_a_run_continues_from_the_folder_it_was_saved_to(tmp_path):
    whole = None
    for kind in ("at once", "last", "folder", "middle"):
        wf.train.seed_everything(1)
        module = Classifier()
        folder = tmp_path / kind
        options = {"default_root_dir": tmp_path}
        every = 3 if kind == "middle" else None
        save = c.ModelCheckpoint(folder, monitor="val_loss", every_n_train_steps=every)
        if kind == "at once":
            trainer = quiet(max_epochs=4, **options)
            trainer.fit(module, batches(5), batches(2))
            whole = weights(module)
            continue
        quiet(max_epochs=2, callbacks=save, **options).fit(module, batches(5), batches(2))
        module = Classifier()
        save = c.ModelCheckpoint(folder, monitor="val_loss")
        trainer = quiet(max_epochs=4, callbacks=save, **options)
        path = folder if kind == "folder" else "last"
        trainer.fit(module, batches(5), batches(2), ckpt_path=path)
        assert trainer.global_step == 20
        np.testing.assert_array_equal(weights(module), whole)
        best = save.best_model_score
        found = trainer.validate(module, batches(2), ckpt_path="best")
        if kind != "middle":
            assert found[0]["val_loss"] == best


def test_what_is_kept_is_told_also_of_a_continued_run(tmp_path):
    def saving():
        return c.ModelCheckpoint(tmp_path / "kept", monitor="val_loss", save_top_k=2)

    save, timer = saving(), c.Timer()
    assert save.kth_value is None and timer.end_time() is None
    quiet(max_epochs=3, callbacks=[save, timer]).fit(Classifier(), batches(5), batches(2))
    assert timer.end_time() - timer.start_time() == pytest.approx(timer.time_elapsed(), abs=1e-3)
    again = saving()
    trainer = quiet(max_epochs=4, callbacks=again)
    trainer.fit(Classifier(), batches(5), batches(2), ckpt_path=save.best_model_path)
    for each, path in ((save, None), (again, tmp_path / "told.yaml")):
        each.to_yaml(path)
        told = yaml.safe_load((path or tmp_path / "kept" / "best_k_models.yaml").read_text())
        assert len(told) == 2 and told == {k: float(v) for k, v in each.best_k_models.items()}
        assert float(each.kth_value) == max(told.values())
    several = c.GradientAccumulationScheduler({2: 4})
    assert several.going_to_accumulate_grad_batches()
    assert not c.GradientAccumulationScheduler({0: 1}).going_to_accumulate_grad_batches()


def test_the_default_folder_is_found_by_the_next_run(tmp_path):
    options = {"default_root_dir": tmp_path, "enable_progress_bar": False}
    wf.train.Trainer(max_epochs=1, **options).fit(Classifier(), batches(2))
    trainer = wf.train.Trainer(max_epochs=2, **options)
    trainer.fit(Classifier(), batches(2), ckpt_path="last")
    assert trainer.global_step == 4
    assert sorted(p.name for p in (tmp_path / "lightning_logs").iterdir()) == [
        "version_0",
        "version_1",
    ]
    module = Classifier.load_from_checkpoint(Path(trainer.log_dir) / "checkpoints")
    np.testing.assert_array_equal(weights(module), weights(trainer.module))


@pytest.mark.parametrize(("top", "kept"), [(1, [1]), (2, [1, 3]), (-1, [1, 2, 3, 4])])
def test_the_best_of_a_run_are_kept_and_found(tmp_path, top, kept):
    save = c.ModelCheckpoint(tmp_path, "{step}", monitor="figure", save_top_k=top)
    module = Scripted([1.0, 4.0, 2.0, 3.0])
    assert save.best_model_path == ""
    quiet(max_epochs=4, callbacks=save).fit(module, batches(1))
    last = "step=4.ckpt" if top == -1 else "last.ckpt"
    names = dict.fromkeys([*[f"step={n}.ckpt" for n in kept], last])
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
    assert (save.best_model_path, save.last_model_path) == (
        str(tmp_path / "step=1.ckpt"), str(tmp_path / last),
    )  # fmt: skip
    trained = Scripted.load_from_checkpoint(save.best_model_path)
    assert (weights(trained) != weights(module)).any()
    last = Scripted.load_from_checkpoint(save.last_model_path)
    np.testing.assert_array_equal(weights(last), weights(module))


def test_what_cannot_be_saved_or_found(tmp_path):
    save = c.ModelCheckpoint(tmp_path / "a", monitor="f1")
    with pytest.raises(UnknownKeyError, match="expected the metric 'f1' to be logged"):
        quiet(callbacks=save).fit(Classifier(), batches(1), batches(1))
    assert Path(save.last_model_path).name == "last.ckpt"
    trainer = quiet(callbacks=c.ModelCheckpoint(tmp_path / "b"))
    with pytest.raises(DataError, match="expected saved states in"):
        trainer.fit(Classifier(), batches(1), ckpt_path="best")
    with pytest.warns(UserWarning, match="expected saved states in.*the run begins anew"):
        trainer.fit(Classifier(), batches(1), ckpt_path="last")


class Scripted(Classifier):
    """Logs given figures, one an epoch."""

    def __init__(self, figures):
        super().__init__()
        self.figures = figures

    def on_train_epoch_end(self):
        self.log("figure", self.figures[self.current_epoch])


@pytest.mark.parametrize(
    ("options", "figures", "epochs", "reason"),
    [
        ({"patience": 2}, [3, 2, 2, 2, 1], 4, "did not get better than 2 2 times"),
        ({"patience": 1, "mode": "max"}, [1, 2, 3, 3, 9], 4, "than 3 1 times"),
        ({"patience": 1, "min_delta": 0.5}, [3, 2.6, 1, 1, 1], 2, "than 3 1 times"),
        ({"stopping_threshold": 1.5}, [3, 2, 1, 0, 0], 3, "is better than 1.5"),
        ({"divergence_threshold": 5}, [3, 4, 6, 0, 0], 3, "is worse than 5"),
        ({}, [3, float("nan"), 0, 0, 0], 2, "figure is nan"),
    ],
)
def test_early_stopping(options, figures, epochs, reason, capsys):
    stopping = c.EarlyStopping("figure", verbose=True, **options)
    trainer = quiet(callbacks=stopping, max_epochs=5)
    trainer.fit(Scripted(figures), batches(1))
    assert trainer.current_epoch == epochs
    assert reason in stopping.reason and reason in capsys.readouterr().out


def test_averages_of_weights():
    seen = []

    class Watched(Classifier):
        def on_train_batch_end(self, outputs, batch, batch_idx):
            seen.append(weights(self))

        def validation_step(self, batch, batch_idx):
            seen.append(weights(self))

    module = Watched(dropout=0.0)
    start = weights(module)
    ema = c.EMA(0.5)
    quiet(callbacks=ema, num_sanity_val_steps=0).fit(module, batches(4), batches(1))
    average = start
    for own in seen[:4]:
        average = 0.5 * average + 0.5 * own
    np.testing.assert_allclose(seen[4], average, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weights(module), average, rtol=1e-4, atol=1e-6)


def test_averages_of_chosen_steps_are_kept_when_a_run_resumes(tmp_path):
    def run(epochs, path=None):
        wf.manual_seed(0)
        module = Classifier(dropout=0.0)
        averaging = c.EMAWeightAveraging(decay=0.5, update_every_n_steps=2)
        trainer = quiet(callbacks=averaging, max_epochs=epochs)
        trainer.fit(module, batches(3), ckpt_path=path)
        return module, trainer

    class Saves(c.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            trainer.save_checkpoint(tmp_path / "a.ckpt")

    wf.manual_seed(0)
    averaging = c.EMAWeightAveraging(decay=0.5, update_every_n_steps=2)
    quiet(callbacks=[averaging, Saves()]).fit(Classifier(dropout=0.0), batches(3))
    module = run(2, tmp_path / "a.ckpt")[0]
    np.testing.assert_array_equal(weights(module), weights(run(2)[0]))
    assert np.abs(weights(module) - weights(run(1)[0])).max() > 1e-3


def test_entries_are_pruned_while_training_goes_on(tmp_path):
    class Counts(Classifier):
        def on_train_epoch_start(self):
            zeros.append(int((self.layers[0].weight == 0).sum()))

    zeros, module = [], Counts(dropout=0.0)
    first = module.layers[3].bias.detach().clone()
    pruning = c.ModelPruning("l1_unstructured", [(module.layers[0], "weight")], amount=0.5)
    saving = c.ModelCheckpoint(tmp_path, save_last=True)
    quiet(callbacks=[pruning, saving], max_epochs=3, enable_checkpointing=True).fit(
        module, batches(2)
    )
    assert zeros == [0, 12, 18] and int((module.layers[0].weight == 0).sum()) == 21
    saved = wf.load(saving.last_model_path)["state_dict"]
    assert saved.keys() == module.state_dict().keys()
    assert not np.array_equal(module.layers[3].bias.detach().numpy(), first.numpy())
    with pytest.raises(ArgumentError, match="pruning_norm with 'ln_structured'"):
        c.ModelPruning("ln_structured", use_global_unstructured=False, pruning_dim=0)
    with pytest.raises(ArgumentError, match="an unstructured pruning_fn"):
        c.ModelPruning("random_structured", pruning_dim=0)


class Normalizer:
    """An object that a hook puts in a checkpoint."""


def test_objects_of_hooks_are_saved_and_need_trust(tmp_path):
    class Adds(Classifier):
        def on_save_checkpoint(self, checkpoint):
            checkpoint["object"] = Normalizer()

        def on_load_checkpoint(self, checkpoint):
            loaded.append(checkpoint["object"])

    loaded, save = [], c.ModelCheckpoint(tmp_path, save_last=True)
    quiet(callbacks=save, enable_checkpointing=True).fit(Adds(), batches(1))
    with pytest.raises(DataError, match="load it with weights_only=False"):
        Adds.load_from_checkpoint(save.last_model_path)
    Adds.load_from_checkpoint(save.last_model_path, weights_only=False)
    trainer = quiet(max_epochs=2)
    trainer.fit(Adds(), batches(1), ckpt_path=save.last_model_path, weights_only=False)
    assert trainer.current_epoch == 2 and [type(x) for x in loaded] == [Normalizer] * 2


def test_stochastic_weight_averaging():
    ends = []

    class Watched(Classifier):
        def on_train_epoch_end(self):
            ends.append(weights(self))

    module = Watched(dropout=0.0)
    averaging = c.StochasticWeightAveraging(0.01, swa_epoch_start=3, annealing_epochs=1)
    trainer = quiet(callbacks=averaging, max_epochs=5)
    trainer.fit(module, batches(3))
    assert averaging.n_averaged == 3
    np.testing.assert_allclose(weights(module), np.mean(ends[1:4], 0), rtol=1e-4, atol=1e-6)
    assert trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(0.01)


def test_rates_and_throughput_are_logged(tmp_path):
    logger = wf.train.loggers.CSVLogger(tmp_path)
    throughput = c.ThroughputMonitor(length_fn=lambda batch: 7 * len(batch[0]), window_size=3)
    module = Classifier()
    module.flops_per_batch = 50
    quiet(
        logger=logger, callbacks=[c.LearningRateMonitor("epoch"), throughput], max_epochs=3,
        log_every_n_steps=4,
    ).fit(module, batches(4), batches(4))  # fmt: skip
    with open(f"{logger.log_dir}/metrics.csv") as file:
        rows = list(csv.DictReader(file))
    rates = [float(r["lr-Adam"]) for r in rows if r["lr-Adam"]]
    np.testing.assert_allclose(rates, [0.05, 0.045, 0.0405])
    for stage, totals in (("train", [4, 8, 12]), ("validate", [4, 4, 4])):
        found = [r for r in rows if r[f"{stage}/batches"]]
        assert [float(r[f"{stage}/batches"]) for r in found] == totals
        for r in found:
            batch = float(r[f"{stage}/device/batches_per_sec"])
            for name, size in (("samples", 4), ("items", 28), ("flops", 50)):
                rate = float(r[f"{stage}/device/{name}_per_sec"])
                assert rate == pytest.approx(size * batch)


@pytest.mark.parametrize(
    ("losses", "options", "bad"),
    [
        ([3, 2, 2.5, 9, 1], {}, [2, 3]),
        ([3, 2, 2.5, 9, 1], {"mode": "max"}, []),
        ([3, 2, 2.5, 9, 1], {"atol": 10}, []),
        ([3, 2, 2.5, np.nan, 1], {}, [2, 3]),
        ([9, 1, 8, 1, 1], {"warmup": 3}, []),
        ([1, 1, 1, 4, 4], {"window": 1, "rtol": 2.5}, [2, 3]),
    ],
)
def test_a_spike_of_the_loss_ends_the_run(losses, options, bad, tmp_path):
    spikes = c.SpikeDetection(**options)

    class Scripted(Classifier):
        def training_step(self, batch, batch_idx):
            loss = super().training_step(batch, batch_idx)
            return loss * 0 + losses[batch_idx]

    trainer = quiet(callbacks=spikes, default_root_dir=tmp_path, max_epochs=1)
    with pytest.raises(c.TrainingSpikeException) if bad else contextlib.nullcontext():
        trainer.fit(Scripted(), batches(5))
    assert spikes.bad_batches == bad
    path = tmp_path / "skip_batches.json"
    assert (json.loads(path.read_text()) == bad) if bad else not path.exists()
    other = c.SpikeDetection(**options)
    other.load_state_dict(spikes.state_dict())
    np.testing.assert_equal(other.state_dict(), spikes.state_dict())


def test_totals_that_cannot_be_are_refused():
    rates = Throughput(10.0, world_size=2, window_size=2, separator=".")
    rates.update(time=1.0, batches=1, samples=2, lengths=4, flops=5)
    for wrong in ({"time": 1.0}, {"batches": 0}, {"samples": 1}, {"lengths": 1}):
        totals = {"time": 3.0, "batches": 2, "samples": 4, "lengths": 8} | wrong
        with pytest.raises(ArgumentError, match="Throughput: expected"):
            rates.update(**totals)
    rates.update(time=3.0, batches=2, samples=4, lengths=8, flops=5)
    assert rates.compute() == {
        "time": 3.0, "batches": 2, "samples": 4, "lengths": 8,
        "device.batches_per_sec": 0.5, "batches_per_sec": 1.0, "device.samples_per_sec": 1.0,
        "samples_per_sec": 2.0, "device.items_per_sec": 2.0, "items_per_sec": 4.0,
        "device.flops_per_sec": 2.5, "flops_per_sec": 5.0, "device.mfu": 0.25,
    }  # fmt: skip
    rates.reset()
    assert rates.compute() == {}
    with pytest.raises(ArgumentError, match="window_size of 2"):
        Throughput(window_size=1)


@pytest.mark.parametrize(
    "limit", ["00:00:00:00", timedelta(0), {"seconds": 0}, 0.0], ids=["text", "delta", "dict", "s"]
)
def test_time_is_up(limit):
    trainer = quiet(max_time=limit, max_epochs=None)
    trainer.fit(Classifier(), batches(3))
    assert trainer.global_step == 1
    timer = trainer.callbacks[-1]
    other = c.Timer("00:00:01:00")
    other.load_state_dict(timer.state_dict())
    assert 0 < other.time_elapsed() < 60 and other.time_remaining() < 60
    with pytest.raises(ArgumentError, match="DD:HH:MM:SS"):
        c.Timer("soon")


def test_one_line_an_epoch_where_there_is_no_terminal():
    out = io.StringIO()
    bar = c.ProgressBar(console=Console(file=out, width=200))

    class Shown(Classifier):
        def training_step(self, batch, batch_idx):
            loss = super().training_step(batch, batch_idx)
            self.log("twice", 2 * loss, prog_bar=True)
            return loss

    quiet(callbacks=bar, max_epochs=2).fit(Shown(), batches(3), batches(1))
    lines = out.getvalue().splitlines()
    assert [line.split(" in ")[0] for line in lines] == ["epoch 0: 3 batches", "epoch 1: 3 batches"]
    words = lines[0].split()
    assert float(words[-1]) == pytest.approx(2 * float(words[words.index("loss") + 1]), rel=1e-2)


def test_a_bar_on_a_terminal():
    out = io.StringIO()
    bar = c.ProgressBar(0.0, Console(file=out, width=120, force_terminal=True))

    class Slow(Classifier):
        def __init__(self):
            super().__init__()
            self.right = wf.torchmetrics.Accuracy(task="multiclass", num_classes=2)

        def on_train_batch_end(self, outputs, batch, batch_idx):
            time.sleep(0.001)

        def validation_step(self, batch, batch_idx):
            self.right.update(wf.zeros(4, dtype=wf.int64), wf.zeros(4, dtype=wf.int64))
            self.log("right", self.right, on_step=True, on_epoch=True, prog_bar=True)

    trainer = quiet(callbacks=bar, max_epochs=2)  # metrics are reset before the second epoch
    trainer.fit(Slow(), batches(3), batches(1))
    assert trainer.callback_metrics["right_epoch"] == 1.0
    assert "3/3" in out.getvalue() and "loss 0." in out.getvalue() and "/s" in out.getvalue()
    assert bar._bar is None
