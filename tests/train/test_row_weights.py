"""Weights of rows and of classes: the loss of each row is multiplied before the mean is taken."""

import numpy as np
import pytest

import weft as wf
import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)
ROWS, CLASSES, STEPS = 4, 3, 5


def probabilities(*shape):
    x = np.exp(RNG.standard_normal(shape))
    return np.float32(x / x.sum(-1, keepdims=True))


BINARY, CHANCES = RNG.integers(0, 2, (ROWS, 1)), RNG.random((ROWS, 1), np.float32)
CLASS, SCORES = np.array([0, 2, 1, 2]), probabilities(ROWS, CLASSES)
ONE_HOT = np.eye(CLASSES, dtype=np.float32)[CLASS]
WORDS, SENTENCES = RNG.integers(0, CLASSES, (ROWS, STEPS)), probabilities(ROWS, STEPS, CLASSES)
PATHS, PLACES = RNG.random((2, ROWS, STEPS, CLASSES), np.float32)
BY_ROW, BY_STEP = np.float32([1, 2, 0, 3]), RNG.random((ROWS, STEPS), np.float32)
BY_CLASS = {0: 1.0, 1: 3.0, 2: 0.5}


def binary_losses():
    return -np.log(np.where(BINARY, CHANCES, 1 - CHANCES))[:, 0]


def class_losses():
    return -np.log(SCORES[np.arange(ROWS), CLASS])


def word_losses():
    return -np.log(np.take_along_axis(SENTENCES, WORDS[..., None], -1)[..., 0])


def of_class(y):
    return np.vectorize(BY_CLASS.get)(y)


CASES = [
    # loss, outputs, targets, losses, weights of rows, factors of all classes of the targets
    ("binary_crossentropy", CHANCES, BINARY, binary_losses, BY_ROW, of_class(BINARY[:, 0])),
    ("binary_crossentropy", CHANCES, BINARY[:, 0], binary_losses, BY_ROW, of_class(BINARY[:, 0])),
    ("sparse_categorical_crossentropy", SCORES, CLASS, class_losses, BY_ROW, of_class(CLASS)),
    ("sparse_categorical_crossentropy", SCORES, CLASS[:, None], class_losses, BY_ROW,
     of_class(CLASS)),
    ("categorical_crossentropy", SCORES, ONE_HOT, class_losses, BY_ROW, of_class(CLASS)),
    ("sparse_categorical_crossentropy", SENTENCES, WORDS, word_losses, BY_STEP, None),
    ("mse", PLACES, PATHS, lambda: ((PLACES - PATHS) ** 2).mean(-1), BY_STEP, None),
]  # fmt: skip


def trained(outputs, loss):
    model = wf.train.Model(wf.nn.PReLU(init=1.0))  # gives positive outputs as they are
    model.compile(lambda p: wf.optim.SGD(p, lr=0.0), loss)
    return model


def graph_model(outputs, loss):
    given = tf.keras.Input(outputs.shape[1:])
    model = tf.keras.Model(given, tf.keras.layers.PReLU()(given))
    model.compile(tf.keras.optimizers.SGD(0.0), loss)
    return model


@pytest.mark.parametrize("made", [trained, graph_model])
@pytest.mark.parametrize(("loss", "outputs", "targets", "losses", "rows", "classes"), CASES)
def test_each_loss_has_its_own_weight(made, loss, outputs, targets, losses, rows, classes):
    each = losses()
    model = made(outputs, loss)
    options = {"batch_size": ROWS, "verbose": 0}
    expected = pytest.approx((each * rows).mean(), rel=1e-4)
    assert model.evaluate(outputs, targets, sample_weight=rows, **options) == expected
    column = rows[..., None]
    assert model.evaluate(outputs, targets, sample_weight=column, **options) == expected
    assert model.test_on_batch(outputs, targets, sample_weight=column) == expected
    assert model.train_on_batch(outputs, targets, sample_weight=column) == expected
    options |= {"sample_weight": column}
    if classes is not None:
        options |= {"class_weight": BY_CLASS}
        expected = pytest.approx((each * rows * classes).mean(), rel=1e-4)
    assert model.fit(outputs, targets, **options).history["loss"][0] == expected


def test_classes_of_binary_targets_as_in_keras():
    g = np.random.default_rng(0)
    x = g.normal(size=(12, 3)).astype("float32")
    y = (x.sum(1, keepdims=True) > 0).astype("float32")
    w = g.normal(size=(1, 3)).astype("float32")
    for factors, expected in (
        ({0: 1.0, 1: 3.0}, 2.11436), ({0: 3.0, 1: 1.0}, 2.08223), ({1: 2.0, 0: 2.0}, 2.09830),
        ({1: 3.0}, 2.11436), ({0: 1.0, 1: 3.0, -1: 7.0}, 2.11436),
    ):  # fmt: skip
        net = wf.nn.Sequential(wf.nn.Linear(3, 1), wf.nn.Sigmoid())
        with wf.no_grad():
            net[0].weight.copy_(wf.tensor(w))
            net[0].bias.zero_()
        model = wf.train.Model(net)
        model.compile(lambda p: wf.optim.SGD(p, lr=0.0), "binary_crossentropy")
        history = model.fit(x, y, batch_size=12, verbose=0, class_weight=factors)
        assert history.history["loss"][0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("loss", "outputs", "targets", "options", "error", "text"),
    [
        ("mse", CHANCES, BINARY, {"sample_weight": BY_STEP}, ShapeError, "expected weights of"),
        ("categorical_crossentropy", SCORES, CLASS, {}, ShapeError, "expected targets of shape"),
        ("sparse_categorical_crossentropy", SENTENCES, WORDS[:, :2], {}, ShapeError,
         "expected class numbers of shape"),
        ("mse", CHANCES, BINARY, {"class_weight": {"a": 1.0}}, ArgumentError, "class numbers"),
        (lambda p, y: ((p - y) ** 2).mean(), CHANCES, BINARY, {"class_weight": {1: 1.0}},
         ArgumentError, "as items have weights"),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit_are_refused(loss, outputs, targets, options, error, text):
    with pytest.raises(error, match=text):
        trained(outputs, loss).fit(outputs, targets, verbose=0, **options)


def test_graph_models_refuse_weights_of_elements():
    with pytest.raises(ShapeError, match="sample_weight: expected weights of rows"):
        graph_model(SCORES, "mse").fit(SCORES, ONE_HOT, sample_weight=ONE_HOT, verbose=0)
    with pytest.raises(ArgumentError, match="give sample_weight instead"):
        graph_model(PLACES, "mse").fit(PLACES, PATHS, class_weight=BY_CLASS, verbose=0)


@pytest.mark.parametrize(
    ("loss", "outputs", "targets", "expected"),
    [
        ("categorical_crossentropy", SCORES, ONE_HOT, (SCORES.argmax(1) == CLASS).mean()),
        ("sparse_categorical_crossentropy", SCORES, CLASS[:, None],
         (SCORES.argmax(1) == CLASS).mean()),
        ("binary_cross_entropy_with_logits", np.log(CHANCES / (1 - CHANCES)), BINARY,
         ((CHANCES > 0.5) == BINARY).mean()),
    ],
)  # fmt: skip
def test_accuracy_by_name_is_that_of_the_loss(loss, outputs, targets, expected):
    model = wf.train.Model(wf.nn.Identity())
    model.compile(wf.optim.SGD([wf.zeros(1, requires_grad=True)], lr=0.0), loss, ["accuracy"])
    assert model.evaluate(outputs, targets, verbose=0)[1] == pytest.approx(expected)
