"""Plain modules: `fit`, and Keras' methods."""

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ArgumentError, ShapeError, StateError
from weft.train.losses import LOSSES, loss_of, optimizer_of, weighted
from weft.train.supervised import Arrays

QUIET = {"enable_progress_bar": False}


def points(count=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, 3)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(np.int64)


def net():
    wf.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def test_fit_is_the_loop_written_out():
    x, y = points()
    model, own = net(), net()
    found = wf.train.fit(
        model, (x, y), loss="cross_entropy", optimizer=wf.optim.SGD(model.parameters(), lr=0.1),
        metrics=["accuracy"], epochs=3, batch_size=25, shuffle=False, validation=(x, y), **QUIET,
    )  # fmt: skip
    optimizer = wf.optim.SGD(own.parameters(), lr=0.1)
    losses, hits = [], []
    for _ in range(3):
        total = right = 0
        for i in range(0, 60, 25):
            a, b = wf.tensor(x[i : i + 25]), wf.tensor(y[i : i + 25])
            logits = own(a)
            loss = nn.functional.cross_entropy(logits, b)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item() * len(b)
            right += (logits.argmax(1) == b).sum().item()
        losses.append(total / 60)
        hits.append(right / 60)
    for p, q in zip(model.parameters(), own.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.history["loss"], losses, rtol=1e-6)
    assert found.history["accuracy"] == hits and found.epoch == [0, 1, 2]
    expected = (own(wf.tensor(x)).argmax(1).numpy() == y).mean()
    assert found.history["val_accuracy"][-1] == expected


def test_a_plain_function_and_a_loader():
    w = wf.zeros(3, requires_grad=True)
    x = np.random.default_rng(0).standard_normal((32, 3)).astype(np.float32)
    y = x @ np.array([1, 2, 3], np.float32)
    loader = [(x[:20], y[:20]), (x[20:], y[20:])]
    optimizer = wf.optim.Adam([w], lr=0.3)
    wf.train.fit(lambda x: x @ w, loader, loss="mse", optimizer=optimizer, epochs=60, **QUIET)
    np.testing.assert_allclose(w.detach().numpy(), [1, 2, 3], atol=0.05)
    with pytest.raises(ArgumentError, match="the model is a function"):
        wf.train.fit(lambda x: x, loader, loss="mse", **QUIET)


def test_arrays():
    x, y = np.arange(10), {"a": np.arange(10) * 2}
    rows = list(Arrays((x, y), 4))
    assert [r[0].tolist() for r in rows] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    drawn = Arrays((x, y), 4, shuffle=True)
    first, second = [np.concatenate([r[0] for r in drawn]) for _ in range(2)]
    assert sorted(first) == list(range(10)) and first.tolist() != second.tolist()
    assert all((2 * r[0] == r[1]["a"]).all() for r in drawn) and len(drawn) == 3
    with pytest.raises(ShapeError, match=r"as many rows each, got \[2, 3\]"):
        Arrays((np.ones(2), np.ones(3)), 1)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_weights_of_rows(name):
    rng = np.random.default_rng(0)
    p = rng.random((6, 3)).astype(np.float32)
    y = rng.random((6, 3)).astype(np.float32)
    if name in ("cross_entropy", "nll_loss", "sparse_categorical_crossentropy"):
        y = rng.integers(0, 3, 6)
    loss, p, y = loss_of(name), wf.tensor(p / p.sum(1, keepdims=True)), wf.tensor(y)
    weights = wf.tensor([1.0, 2, 0, 1, 3, 1])
    each = [loss(p[i : i + 1], y[i : i + 1]).item() for i in range(6)]
    found = weighted(loss, p, y, [weights]).item()
    assert found == pytest.approx(np.mean(np.array(each) * weights.numpy()), rel=1e-5)
    np.testing.assert_allclose(np.mean(each), loss(p, y).item(), rtol=1e-5)


def test_keras_methods():
    x, y = points(100)
    wf.train.seed_everything(0)
    model = wf.train.Model(net())
    model.compile("adam", nn.CrossEntropyLoss(), metrics=["accuracy"])
    seen = []

    class Noted:
        def set_model(self, model):
            self.model = model

        def on_epoch_end(self, epoch, logs):
            seen.append((epoch, sorted(logs)))
            self.model.stop_training = epoch == 7

    history = model.fit(
        x, y, batch_size=10, epochs=20, initial_epoch=2, validation_split=0.2, verbose=0,
        callbacks=[Noted()],
    )  # fmt: skip
    assert history.epoch == [2, 3, 4, 5, 6, 7] and [e for e, _ in seen] == history.epoch
    assert seen[0][1] == ["accuracy", "loss", "val_accuracy", "val_loss"] == sorted(history.history)
    assert history.history["loss"][-1] < history.history["loss"][0]
    assert model.optimizer.param_groups[0]["lr"] == 1e-3
    loss, accuracy = model.evaluate(x, y, verbose=0)
    outputs = model.predict(x, batch_size=7, verbose=0)
    assert outputs.shape == (100, 2) and accuracy == (outputs.argmax(1) == y).mean()
    assert loss == pytest.approx(
        nn.functional.cross_entropy(wf.tensor(outputs), wf.tensor(y)).item(), rel=1e-5
    )
    np.testing.assert_array_equal(model.predict([x[:50], x[50:]], verbose=0), outputs)


def test_weights_of_classes_are_weights_of_rows():
    x, y = points(40)
    found = []
    for option in ({"class_weight": {0: 1.0, 1: 3.0}}, {"sample_weight": np.where(y, 3.0, 1.0)}):
        model = wf.train.Model(net())
        model.compile(lambda p: wf.optim.SGD(p, lr=0.1), "cross_entropy")
        options = {"sample_weight": np.float32(option["sample_weight"])} if (
            "sample_weight" in option) else option  # fmt: skip
        history = model.fit(x, y, shuffle=False, epochs=2, verbose=0, **options)
        found.append((history.history["loss"], model.predict(x, verbose=0)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: wf.train.Model(net()).fit([], verbose=0), StateError, r"expected compile\(\)"),
        (lambda: loss_of("hinge"), ArgumentError, "expected as loss an object"),
        (lambda: optimizer_of("newton", net()), ArgumentError, "expected as optimizer"),
        (lambda: wf.train.fit(net(), (points()[0],), loss="mse", **QUIET), ArgumentError,
         r"expected batches \(x, y\)"),
        (lambda: wf.train.fit(net(), points(), loss="mse", metrics=["f2"], **QUIET),
         ArgumentError, "expected as metric"),
        (lambda: weighted(lambda a, b: (a - b).mean(), wf.ones(2), wf.ones(2), [wf.ones(2)]),
         ArgumentError, "as items have weights"),
    ],
)  # fmt: skip
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()
