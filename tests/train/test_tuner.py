"""The tuner: learning rates and batch sizes."""

import numpy as np
import pytest

import weft as wf
from weft.errors import ArgumentError
from weft.train.tuner import BatchSizeFinder, LRFinder, Tuner

from .line import Classifier, batches, quiet, weights


def test_a_rate_is_found_and_the_weights_are_put_back():
    wf.manual_seed(0)
    module = Classifier(dropout=0.0)
    before = weights(module)
    found = Tuner(quiet()).lr_find(module, batches(30), min_lr=1e-6, max_lr=10, num_training=60)
    assert 20 < len(found.lr) <= 60 and found.lr[0] == pytest.approx(1e-6)
    assert np.all(np.diff(found.lr) > 0)
    assert module.lr == found.suggestion() and 1e-5 < module.lr < 10
    np.testing.assert_array_equal(weights(module), before)


def test_the_steepest_fall_is_suggested():
    rates = np.geomspace(1e-4, 1, 41).tolist()
    losses = [2 - np.tanh(2 * (np.log10(r) + 2)) for r in rates]
    assert LRFinder(rates, losses).suggestion() == pytest.approx(1e-2)
    assert LRFinder([0.1], [1.0]).suggestion() is None
    with pytest.raises(ArgumentError, match="'exponential' or 'linear'"):
        Tuner(quiet()).lr_find(Classifier(), batches(2), mode="up")
    with pytest.raises(ArgumentError, match="give attr_name"):
        Tuner(quiet()).lr_find(wf.train.Module(), batches(2))


class Sized(Classifier):
    """Runs out of memory beyond a size."""

    def __init__(self, most):
        super().__init__()
        self.batch_size, self.most = 1, most

    def train_dataloader(self):
        return batches(100 // self.batch_size, self.batch_size)

    def training_step(self, batch, batch_idx):
        if len(batch[0]) > self.most:
            raise MemoryError
        return super().training_step(batch, batch_idx)


@pytest.mark.parametrize(
    ("mode", "most", "expected"),
    [
        ("power", 21, 16),
        pytest.param("binsearch", 21, 19, marks=pytest.mark.slow),
        ("power", 999, 32),
    ],
)
def test_the_largest_batch(mode, most, expected):
    module = Sized(most)
    assert Tuner(quiet()).scale_batch_size(module, mode=mode) == module.batch_size == expected
    finder = BatchSizeFinder(mode, init_val=4, max_val=4, steps_per_trial=1, margin=0)
    trainer = quiet(callbacks=finder)
    trainer.fit(module)
    assert finder.optimal_batch_size == module.batch_size == 4 and trainer.global_step == 25
    with pytest.raises(ArgumentError, match="loaders of the module or the data module"):
        quiet(callbacks=finder).fit(module, batches(3))
    with pytest.raises(ArgumentError, match="an attribute 'size'"):
        Tuner(quiet()).scale_batch_size(module, batch_arg_name="size")
