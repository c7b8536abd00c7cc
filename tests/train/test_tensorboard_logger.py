"""TensorBoardLogger: curves, hyperparameters, and how the run ended."""

from pathlib import Path

import pytest

import weft as wf
from weft.formats import wire
from weft.formats.event.reading import read_events

from .line import Classifier, batches, quiet


def values(logger):
    (path,) = Path(logger.log_dir).glob("events.*")
    return [(e.step, v) for e in read_events(path) for v in e.values]


def status(logger):
    """How the run ended, by the plugin's number."""
    (end,) = [v for _, v in values(logger) if v.tag == "_hparams_/session_end_info"]
    (wrapped,) = [f.value for f in wire.fields(end.content) if f.number == 4]
    return next(wire.fields(wrapped)).value


def test_curves_and_hyperparameters(tmp_path):
    logger = wf.train.loggers.TensorBoardLogger(tmp_path, name="runs")
    trainer = quiet(logger=logger, log_every_n_steps=2, max_epochs=2)
    trainer.fit(Classifier(), batches(4), batches(2))
    curves = [(s, v.simple_value) for s, v in values(logger) if v.tag == "loss_step"]
    assert [step for step, _ in curves] == [1, 3, 5, 7]
    assert [s for s, v in values(logger) if v.tag == "val_accuracy"] == [3, 7]
    assert status(logger) == 1
    (start,) = [v for _, v in values(logger) if v.tag == "_hparams_/session_start_info"]
    assert b"lr" in start.content and b"dropout" in start.content
    assert wf.train.loggers.TensorBoardLogger(tmp_path, name="runs").version == 1


def test_a_run_that_fails_says_so(tmp_path):
    class Failing(Classifier):
        def on_train_epoch_end(self):
            raise ValueError("no more")

    logger = wf.train.loggers.TensorBoardLogger(tmp_path)
    with pytest.raises(ValueError, match="no more"):
        quiet(logger=logger, log_every_n_steps=1).fit(Failing(), batches(2))
    assert status(logger) == 2
