"""What a trainer says of its run and of its stages, while it runs and after it."""

from weft.train import callbacks as c

from .line import Classifier, batches, quiet


class States(c.Callback):
    """Notes what the trainer says that it does."""

    def __init__(self):
        self.seen = set()

    def _note(self, trainer, *_):
        flags = ("training", "validating", "testing", "predicting", "sanity_checking")
        self.seen.add((trainer.stage, *[f for f in flags if getattr(trainer, f)]))

    on_train_batch_start = on_validation_batch_start = on_test_batch_start = _note
    on_predict_batch_start = _note


def test_what_a_trainer_says_of_its_run(capsys):
    stop = c.EarlyStopping("val_loss")
    trainer = quiet(callbacks=[States(), stop])
    model, loader = Classifier(), batches(2)
    trainer.fit(model, loader, loader)
    trainer.validate(model, loader)
    trainer.predict(model, loader)
    assert trainer.callbacks[0].seen == {
        ("fit", "sanity_checking"), ("fit", "training"), ("fit", "validating"),
        ("validate", "validating"), ("predict", "predicting"),
    }  # fmt: skip
    assert not (trainer.training or trainer.validating or trainer.predicting)
    assert (trainer.model, trainer.lightning_module) == (model, model)
    assert trainer.train_dataloader is loader
    assert (trainer.global_rank, trainer.world_size, trainer.is_global_zero) == (0, 1, True)
    assert (trainer.early_stopping_callback, trainer.checkpoint_callbacks) == (stop, [])
    assert trainer.progress_bar_callback is None
    assert [s.scheduler for s in trainer.lr_scheduler_configs] == [model.lr_schedulers()]
    trainer.print("once")
    assert capsys.readouterr().out == "once\n"


def test_what_a_trainer_tells_of_its_stages():
    seen = {}

    class Watched(Classifier):
        def on_validation_epoch_start(self):
            trainer = self.trainer
            stage = "sanity" if trainer.sanity_checking else "fit" if trainer.training else "other"
            seen[stage] = trainer.evaluating, trainer.num_sanity_val_batches

        def on_train_batch_start(self, batch, batch_idx):
            seen["step"] = self.trainer.evaluating, self.trainer.enable_validation, self.on_gpu

        def predict_step(self, batch, batch_idx, dataloader_idx=0):
            return self(batch[0])

        def test_step(self, batch, batch_idx):
            self.log("test_loss", 1.5)

    trainer = quiet(num_sanity_val_steps=2, log_every_n_steps=1)
    assert trainer.test_dataloaders is None and trainer.predict_dataloaders is None
    assert trainer.predict_loop is None and trainer.num_devices == 1
    assert (trainer.num_test_batches, trainer.num_predict_batches) == ([], [])
    model = Watched()
    trainer.fit(model, batches(2), batches(3))
    assert seen["sanity"] == (True, [2]) and seen["step"] == (False, True, False)
    loaders = batches(4), batches(5)
    trainer.test(model, list(loaders[0]))
    assert trainer.num_test_batches == [4] and len(trainer.test_dataloaders) == 4
    assert trainer.logged_metrics["test_loss"] == 1.5
    trainer.predict(model, [loaders[0], loaders[1]])
    assert trainer.num_predict_batches == [4, 5] and len(trainer.predict_dataloaders) == 2
    assert [len(x) for x in trainer.predict_loop.predictions] == [4, 5]
    model.hparams.lr = 1.0
    assert model.hparams_initial.lr == 0.05
    assert str(trainer.strategy.root_device) == "cpu"
