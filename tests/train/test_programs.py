"""Programs in Lightning's style: their names, forms and files; values are those of Lightning."""

import json
import os
import signal
from argparse import Namespace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ArgumentError
from weft.train import callbacks as c
from weft.train.interruption import SIGTERMException
from weft.train.utilities.model_summary import ModelSummary, summarize
from weft.utils.data import DataLoader, TensorDataset

from .line import quiet

X = wf.tensor(np.random.default_rng(0).normal(size=(24, 4)).astype("f4"))
DATA = TensorDataset(X, X.sum(1, keepdim=True))


def loader(size=6):
    return DataLoader(DATA, batch_size=size)


def fixed(module, seed):
    """The module with drawn weights, which other frameworks have as well."""
    random = np.random.default_rng(seed)
    with wf.no_grad():
        for p in module.parameters():
            p.copy_(wf.tensor((random.normal(size=tuple(p.shape)) * 0.2).astype("f4")))
    return module


class Line(wf.train.LightningModule):
    """A step without `batch_idx`, whose arguments are one namespace."""

    def __init__(self, args=None):
        super().__init__()
        self.save_hyperparameters(args or Namespace(lr=0.05))
        self.layer, self.losses = fixed(nn.Linear(4, 1), 1), []

    def training_step(self, batch):
        loss = ((self.layer(batch[0]) - batch[1]) ** 2).mean()
        self.log("loss", loss, on_step=True, on_epoch=True, prog_bar=True, rank_zero_only=True)
        self.losses.append(round(loss.item(), 4))
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("vl", ((self.layer(batch[0]) - batch[1]) ** 2).mean(), sync_dist=True)

    def predict_step(self, batch):
        return self.layer(batch[0])

    def configure_optimizers(self):
        return wf.optim.SGD(self.parameters(), lr=self.hparams.lr)


def test_files_have_lightnings_names_and_are_read_again(tmp_path):
    save = c.ModelCheckpoint(
        tmp_path, "{epoch:02d}-{vl:.1f}", monitor="vl", save_top_k=2, save_last=True
    )
    trainer, module = quiet(max_epochs=3, callbacks=save), Line(Namespace(lr=0.01))
    trainer.fit(module, loader(), loader())
    kept = {Path(path).name: score.item() for path, score in save.best_k_models.items()}
    assert len(kept) == 2 and save.best_model_score == min(kept.values())
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*kept, "last.ckpt"])
    assert all(name == f"{name[:8]}-vl={score:.1f}.ckpt" for name, score in kept.items())
    state = wf.load(save.best_model_path, map_location="cpu", weights_only=False)
    assert state["hyper_parameters"] == {"lr": 0.01} and state["hparams_name"] == "args"
    again = Line.load_from_checkpoint(save.best_model_path, lr=0.5)
    assert again.hparams.lr == 0.5 and str(again.device) == "cpu" and again.dtype is wf.float32
    assert (again.layer.weight == state["state_dict"]["layer.weight"]).all()
    other = c.ModelCheckpoint(tmp_path, "{epoch:02d}-{vl:.1f}", monitor="vl", save_last="link")
    quiet(max_epochs=1, callbacks=other).fit(Line(Namespace(lr=0.01)), loader(), loader())
    assert os.path.islink(tmp_path / "last-v1.ckpt")  # files of another run stay


def test_loaders_are_combined():
    seen = []

    class Two(Line):
        def training_step(self, batch, batch_idx):
            seen.append({k: len(v[0]) for k, v in batch.items()})
            return super().training_step(batch["a"])

        def validation_step(self, batch, batch_idx, dataloader_idx):
            self.log("n", float(len(batch[0])), reduce_fx="sum")

    trainer = quiet(num_sanity_val_steps=0)
    trainer.fit(Two(), {"a": loader(6), "b": loader(12)}, {"p": loader(8), "q": loader(24)})
    assert seen == [{"a": 6, "b": 12}] * 4
    assert trainer.num_val_batches == [3, 1]
    assert trainer.callback_metrics["n/dataloader_idx_1"] == 24
    with pytest.raises(ArgumentError, match=r"expected validation_step.*dataloader_idx"):
        trainer.validate(Line(), [loader(), loader()])
    combined = wf.train.CombinedLoader([range(3), range(2)], "sequential")
    assert (list(combined)[3], len(combined)) == ((0, 0, 1), 5)


def test_predictions_are_written(tmp_path):
    class Writer(c.BasePredictionWriter):
        def write_on_batch_end(self, trainer, module, prediction, items, batch, i, loader_number):
            wf.save(prediction, tmp_path / f"{i}.pt")

        def write_on_epoch_end(self, trainer, module, predictions, items):
            (tmp_path / "items.json").write_text(json.dumps([len(predictions), items[0][1]]))

    trainer = quiet(callbacks=Writer("batch_and_epoch"))
    assert trainer.predict(Line(), loader(10), return_predictions=False) is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.pt", "1.pt", "2.pt", "items.json"]
    assert json.loads((tmp_path / "items.json").read_text()) == [3, list(range(10, 20))]


def test_layers_are_thawed_and_gradients_accumulated():
    class Fine(Line):
        def __init__(self):
            super().__init__()
            self.backbone, self.rates = fixed(nn.Linear(4, 4), 2), []

        def on_train_batch_end(self, *_):
            self.rates.append([g["lr"] for g in self.trainer.optimizers[0].param_groups])

        def configure_optimizers(self):
            return wf.optim.SGD([p for p in self.parameters() if p.requires_grad], 0.02)

    module = Fine()
    callbacks = [
        c.GradientAccumulationScheduler({2: 2}),
        c.BackboneFinetuning(1, lambda epoch: 1.5),
        c.LambdaCallback(on_train_start=lambda trainer, module: module.rates.clear()),
    ]
    trainer = quiet(max_epochs=3, callbacks=callbacks)
    trainer.fit(module, loader())
    assert trainer.global_step == 4 + 4 + 2
    expected = [[0.02]] * 4 + [[0.02, 0.002]] * 4 + [[0.02, 0.003]] * 4
    np.testing.assert_allclose(np.concatenate(module.rates), np.concatenate(expected))


def test_a_module_with_two_optimizers_counts_and_logs_as_lightning(tmp_path):
    class Two(Line):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.other = fixed(nn.Linear(4, 1), 3)

        def training_step(self, batch, batch_idx):
            for layer, optimizer in zip((self.layer, self.other), self.optimizers(), strict=True):
                with self.toggled_optimizer(optimizer):
                    loss = ((layer(batch[0]) - batch[1]) ** 2).mean()
                    optimizer.zero_grad()
                    self.manual_backward(loss)
                    optimizer.step()
            self.log("loss", loss)

        def configure_optimizers(self):
            first = wf.optim.SGD(self.layer.parameters(), 0.05)
            schedule = wf.optim.lr_scheduler.StepLR(first, 1)
            second = {"optimizer": wf.optim.Adam(self.other.parameters())}
            return {"optimizer": first, "lr_scheduler": schedule}, second

    logger = wf.train.loggers.CSVLogger(tmp_path, prefix="p")
    trainer = quiet(logger=logger, log_every_n_steps=2, profiler="simple")
    trainer.fit(Two(), loader())
    assert trainer.global_step == 8
    assert [(row["step"], "p-loss" in row) for row in logger.metrics] == [(1, True), (3, True)]
    name = "[LightningModule]" + Two.__qualname__ + ".training_step"
    assert len(trainer.profiler.recorded_durations[name]) == 4
    assert "lr: 0.05" in Path(logger.log_dir, "hparams.yaml").read_text()


def test_a_run_is_terminated_after_its_state_is_saved(tmp_path):
    class Ended(Line):
        def on_train_batch_end(self, outputs, batch, batch_idx):
            assert set(outputs) == {"loss"}
            if self.global_step == 3:
                signal.raise_signal(signal.SIGTERM)

    trainer = quiet(callbacks=c.ModelCheckpoint(tmp_path), max_epochs=2)
    with pytest.raises(SIGTERMException):
        trainer.fit(Ended(), loader())
    assert trainer.received_sigterm and trainer.state.stopped
    again = quiet(callbacks=c.ModelCheckpoint(tmp_path), max_epochs=2)
    again.fit(Line(), loader(), ckpt_path="last")
    assert again.global_step == 8 and again.ckpt_path == str(tmp_path / "last.ckpt")


def test_a_file_is_there_when_its_path_is_read(tmp_path):
    save, seen = c.ModelCheckpoint(tmp_path, every_n_train_steps=1), []

    class Reads(c.Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            if save.best_model_path:
                seen.append(wf.load(save.best_model_path)["global_step"])

    quiet(callbacks=[Reads(), save]).fit(Line(), loader())
    assert seen == [1, 2, 3] and len(list(tmp_path.iterdir())) == 1


class Data(wf.train.LightningDataModule):
    def __init__(self, size=6, **kwargs):
        super().__init__()
        self.save_hyperparameters()

    def train_dataloader(self):
        return loader(self.hparams.size)

    def transfer_batch_to_device(self, batch, device, dataloader_idx):
        assert str(device) == "cpu"
        return [x * 2 for x in batch]


def test_data_modules_have_hyperparameters_and_move_batches(tmp_path):
    trainer = quiet(reload_dataloaders_every_n_epochs=1, max_epochs=2)
    module, data = Line(), Data(12, extra=1)
    trainer.fit(module, data)
    assert module.losses[0] == pytest.approx(
        float((((fixed(nn.Linear(4, 1), 1)(X[:12] * 2) - DATA[:12][1] * 2) ** 2).mean()).item()),
        rel=1e-3,
    )
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    again = Data.load_from_checkpoint(tmp_path / "a.ckpt", size=4)
    assert again.hparams == {"size": 4, "extra": 1}
    made = wf.train.DataModule.from_datasets(DATA, [DATA, DATA], batch_size=8)
    assert len(made.train_dataloader()) == 3 and len(made.val_dataloader()) == 2


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: quiet(plugins=["x"]), "expected plugins=None"),
        (lambda: quiet(profiler="fast"), "expected profiler of"),
        (lambda: quiet(barebones=True, profiler="simple"), "leaves out what is given"),
        (lambda: quiet(devices=2), "expected devices 1"),
        (lambda: quiet(accelerator="gpu"), "expected accelerator 'cpu'"),
        (lambda: quiet(strategy="horses"), "expected strategy of"),
        (lambda: quiet().fit(wf.train.Module(), []), "expected configure_optimizers in Module"),
        (lambda: c.ModelCheckpoint(save_top_k=2), "expected save_top_k of -1, 0 or 1"),
        (lambda: c.ModelCheckpoint(every_n_epochs=1, every_n_train_steps=1), "expected one of"),
        (lambda: c.LambdaCallback(on_lunch=print), "expected names of a callback's methods"),
        (lambda: wf.train.CombinedLoader([], "longest"), "expected mode of"),
    ],
)
def test_what_cannot_work_is_refused(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


def test_arguments_that_change_nothing_here_are_taken(capsys):
    trainer = quiet(
        strategy="ddp", devices="auto", benchmark=True, use_distributed_sampler=False,
        sync_batchnorm=True, detect_anomaly=True, enable_progress_bar=True, max_time="00:00:05:00",
        val_check_interval=timedelta(hours=1), callbacks=[c.ModelSummary(max_depth=-1)],
    )  # fmt: skip
    trainer.fit(Line(), loader(), loader())
    assert trainer.fit_loop.validations == 0 and trainer.strategy.world_size == 1
    trainer.validate(Line(), loader())
    told = capsys.readouterr()
    assert "layer | Linear | 5" in told.err and "validate metrics\n  vl  " in told.out


class Reads(c.Callback):
    """What a trainer has of metrics at the ends of passes."""

    def __init__(self):
        self.seen = []

    def on_validation_epoch_end(self, trainer, module):
        found = trainer.callback_metrics["vl"], trainer.logged_metrics["vl"]
        self.seen.append((trainer.sanity_checking, *map(float, found)))

    def on_train_epoch_end(self, trainer, module):
        assert round(float(trainer.logged_metrics["a"]), 4) == module.losses[-1]
        mean = trainer.logged_metrics["b_epoch"]
        assert mean == trainer.callback_metrics["b"] and trainer.logged_metrics["b_step"] == 3


def test_metrics_are_read_at_the_end_of_their_pass():
    class Logs(Line):
        def training_step(self, batch):
            loss = super().training_step(batch)
            self.log("a", loss)
            self.log("b", 3.0, on_step=True, on_epoch=True)
            return loss

    reads, module = Reads(), Logs()
    trainer = quiet(max_epochs=2, callbacks=reads, num_sanity_val_steps=1, log_every_n_steps=50)
    trainer.fit(module, loader(), loader())
    assert [x[0] for x in reads.seen] == [True, False, False]
    assert all(a == b for _, a, b in reads.seen) and len({a for _, a, _ in reads.seen}) == 3
    assert float(trainer.callback_metrics["vl"]) == reads.seen[-1][1]


def test_a_summary_of_layers_in_layers():
    net = wf.nn.Sequential(wf.nn.Linear(2, 3), wf.nn.Sequential(wf.nn.Linear(3, 1)))
    net[0].weight.requires_grad_(False)
    whole, outer = ModelSummary(net, max_depth=-1), summarize(net)
    assert whole.layer_names == ["0", "1", "1.0"] and outer.layer_names == ["0", "1"]
    assert whole.layer_types == ["Linear", "Sequential", "Linear"]
    assert whole.param_nums == [9, 4, 4] and whole.training_modes == [True] * 3
    assert (outer.total_parameters, outer.trainable_parameters) == (13, 7)
    assert outer.model_size == 52e-6 and "13 parameters in all" in str(ModelSummary(net, 0))


class Measured(Line):
    """A metric of steps and epochs, which is reset before a checkpoint is looked for."""

    def __init__(self):
        super().__init__()
        self.mean = wf.torchmetrics.MeanMetric()

    def training_step(self, batch):
        loss = super().training_step(batch)
        self.mean(loss)
        self.log("mean", self.mean, on_step=True, on_epoch=True, prog_bar=True)
        return loss


def test_a_metric_of_steps_has_no_figure_after_its_reset(tmp_path):
    save = c.ModelCheckpoint(tmp_path, monitor="vl")
    trainer, module = quiet(max_epochs=2, callbacks=save), Measured()
    trainer.fit(module, loader(), loader())
    assert trainer.callback_metrics["mean_epoch"].item() == pytest.approx(
        np.mean(module.losses[-4:]), abs=1e-3
    )
    assert trainer.log_dir == str(trainer.default_root_dir)
