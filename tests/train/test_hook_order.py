"""The order of all hooks is Lightning's: callbacks before the module, monitors last."""

import weft as wf
from weft.train.callbacks import Callback
from weft.train.events import EVENTS
from weft.train.hooks import Hooks

from .line import Classifier, batches, quiet

CALLED = ("setup", "configure_model", "configure_optimizers", "configure_callbacks", "teardown")
STEPS = (
    "training_step", "validation_step", "optimizer_step", "optimizer_zero_grad", "backward",
    "configure_gradient_clipping", "lr_scheduler_step", "prepare_data", "train_dataloader",
    "val_dataloader", "on_validation_model_eval", "on_validation_model_train",
    "on_save_checkpoint", "on_load_checkpoint", "on_before_batch_transfer",
    "on_after_batch_transfer",
)  # fmt: skip


def recorder(base, names, prefix, seen):
    """A subclass whose methods note that they are called."""

    def noted(name):
        def method(self, *args, **kwargs):
            seen.append(f"{prefix}{name}")
            return getattr(base, name)(self, *args, **kwargs)

        return method

    return type("Recorder", (base,), {name: noted(name) for name in names})


def run(**options):
    seen = []
    names = [n for n in dict.fromkeys([*EVENTS, *CALLED, *STEPS]) if hasattr(Classifier, n)]
    module = recorder(Classifier, names, "", seen)()
    events = [n for n in EVENTS if hasattr(Callback, n)]
    early = recorder(Callback, [*events, "state_dict"], "c.", seen)()
    late = recorder(Callback, ["on_train_epoch_end", "on_train_end"], "late.", seen)()
    late.monitors = True
    loaders = (batches(2), batches(1))
    trainer = quiet(callbacks=[late, early], **options)
    trainer.fit(module, *loaders)
    return seen


BATCH = """
on_before_batch_transfer on_after_batch_transfer
c.on_train_batch_start on_train_batch_start optimizer_step training_step
c.on_before_zero_grad on_before_zero_grad optimizer_zero_grad
c.on_before_backward on_before_backward backward c.on_after_backward on_after_backward
c.on_before_optimizer_step on_before_optimizer_step configure_gradient_clipping
"""
VALIDATION = """
on_validation_model_eval c.on_validation_start on_validation_start
c.on_validation_epoch_start on_validation_epoch_start
on_before_batch_transfer on_after_batch_transfer
c.on_validation_batch_start on_validation_batch_start validation_step
c.on_validation_batch_end on_validation_batch_end
c.on_validation_epoch_end on_validation_epoch_end
c.on_validation_end on_validation_end on_validation_model_train
"""


def test_the_order_of_fit():
    expected = f"""
    configure_callbacks prepare_data c.setup setup configure_model configure_optimizers
    c.on_fit_start on_fit_start
    c.on_sanity_check_start {VALIDATION} c.on_sanity_check_end
    c.on_train_start on_train_start
    c.on_train_epoch_start on_train_epoch_start
    {BATCH} c.on_train_batch_end on_train_batch_end
    {BATCH} lr_scheduler_step c.on_train_batch_end on_train_batch_end
    {VALIDATION}
    c.on_train_epoch_end on_train_epoch_end late.on_train_epoch_end
    late.on_train_end c.on_train_end on_train_end
    c.on_fit_end on_fit_end
    c.teardown teardown
    """.split()
    assert run() == expected


def test_every_event_has_a_method():
    assert [n for n in EVENTS if not hasattr(Callback, n)] == []
    only_callbacks = {"on_sanity_check_start", "on_sanity_check_end", "on_exception"}
    assert {n for n in EVENTS if not hasattr(Hooks, n)} == only_callbacks


def test_an_exception_is_reported_and_ends_the_run():
    seen = []

    class Failing(Classifier):
        def training_step(self, batch, batch_idx):
            raise ZeroDivisionError

    callback = recorder(Callback, ["on_exception", "teardown", "on_fit_end"], "", seen)()
    try:
        quiet(callbacks=callback).fit(Failing(), batches(1))
    except ZeroDivisionError:
        seen.append("raised")
    assert seen == ["on_exception", "teardown", "raised"]
    assert not wf.are_deterministic_algorithms_enabled()
