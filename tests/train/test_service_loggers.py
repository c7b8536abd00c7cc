"""Loggers of services, with packages that only note what they are told; search at the start."""

import sys
import types

import pytest

import weft as wf
from tests.train.line import Classifier, batches, quiet
from weft.errors import ArgumentError, ConfigError, StateError
from weft.train import loggers
from weft.train.tuner import LearningRateFinder


class Note:
    """Notes calls by name; gives itself, and is anything."""

    def __init__(self):
        self.told = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args, **options):
            self.told.append((name, args, options))
            return self

        return call

    def of(self, name):
        return [(args, options) for n, args, options in self.told if n == name]


@pytest.fixture
def package(monkeypatch):
    """Installs a package that notes."""

    def install(name):
        note = Note()
        module = types.ModuleType(name)
        module.__getattr__ = lambda attribute: getattr(note, attribute)
        monkeypatch.setitem(sys.modules, name, module)
        return module, note

    return install


def run(logger, folder):
    """Two epochs with a checkpoint each."""
    best = wf.train.callbacks.ModelCheckpoint(folder, monitor="val_loss", save_top_k=-1)
    trainer = wf.train.Trainer(
        max_epochs=2, logger=logger, callbacks=[best], enable_progress_bar=False,
        enable_model_summary=False, log_every_n_steps=2,
    )  # fmt: skip
    trainer.fit(Classifier(), batches(4), batches(2))
    return best


def test_wandb(package, tmp_path, monkeypatch):
    module, note = package("wandb")
    module.run = None
    note.config, note.id = note, "r1"
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    logger = loggers.WandbLogger(log_model=True, prefix="a", entity="team")
    logger.log_hyperparams({"act": max, "inner": {"lr": 0.1}})
    best = run(logger, tmp_path)
    assert note.of("init")[0][1]["project"] == logger.name == "mine"
    assert note.of("init")[0][1]["entity"] == "team" and logger.version == "r1"
    assert note.of("update")[0] == (({"act": "max", "inner": {"lr": 0.1}},),
                                    {"allow_val_change": True})  # fmt: skip
    steps = [m["trainer/global_step"] for (m,), _ in note.of("log")]
    assert steps == sorted(steps) and max(steps) == 7
    assert all(n.startswith(("a-", "trainer/")) for (m,), _ in note.of("log") for n in m)
    files = [args[0] for args, _ in note.of("add_file")]
    assert set(best.best_k_models) <= set(files)
    aliases = [options["aliases"] for _, options in note.of("log_artifact")]
    assert ["latest", "best"] in aliases
    logger.log_image(key="x", images=[1, 2], caption=["a", "b"])
    assert note.of("Image") == [((1,), {"caption": "a"}), ((2,), {"caption": "b"})]
    with pytest.raises(ArgumentError, match=r"2 entries of .'caption'"):
        logger.log_image("x", [1, 2], caption=["a"])
    with pytest.raises(ArgumentError, match="log_model=False with offline"):
        loggers.WandbLogger(offline=True, log_model=True)


def test_comet(package, tmp_path):
    _, note = package("comet_ml")
    run(loggers.CometLogger(project="p", name="n"), tmp_path)
    assert note.of("start")[0][1]["project"] == "p"
    assert note.of("ExperimentConfig")[0][1] == {"name": "n"}
    assert [o["epoch"] for _, o in note.of("log_metrics")][-1] == 1 and note.of("flush")


def test_a_package_that_is_not_installed(monkeypatch):
    for name, kind in (("wandb", "WandbLogger"), ("mlflow", "MLFlowLogger")):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ConfigError, match=f"{kind}: .*pip install {name}"):
            getattr(loggers, kind)()


class Slow(Classifier):
    """A module with a rate that is too small."""

    def __init__(self):
        super().__init__(lr=1e-6, dropout=0.0)

    def configure_optimizers(self):
        return wf.optim.SGD(self.parameters(), lr=self.lr)


def test_a_rate_is_found_when_training_begins():
    finder = LearningRateFinder(num_training_steps=30, max_lr=1.0, early_stop_threshold=None)
    module, seen = Slow(), []
    module.on_train_start = lambda: seen.append(module.optimizers().param_groups[0]["lr"])
    before = [p.detach().clone() for p in module.parameters()]
    trainer = quiet(max_steps=1, callbacks=[finder])
    module.on_train_batch_start = lambda batch, batch_idx: seen.append(
        all((a == b).all() for a, b in zip(before, module.parameters(), strict=True))
    )
    trainer.fit(module, batches(4))
    assert seen[-2:] == [module.lr, True] and module.lr == finder.optimal_lr.suggestion() > 1e-6
    assert trainer.global_step == 1 and module.trainer is trainer


def test_a_search_refuses_a_module_that_is_built_in_setup():
    class Late(Slow):
        def setup(self, stage):
            self.layers = wf.nn.Linear(3, 2)

    trainer = quiet(max_steps=1, callbacks=[LearningRateFinder(num_training_steps=12)])
    with pytest.raises(StateError, match="the same parameters after setup"):
        trainer.fit(Late(), batches(4))
