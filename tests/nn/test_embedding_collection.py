"""EmbeddingBagCollection against EmbeddingBags and their optimizers."""

import copy

import numpy as np
import pytest

import weft as wf
from weft.errors import ArgumentError, OutOfRangeError, ShapeError
from weft.table import FTRL, SGD, Adagrad, Adam

Config = wf.nn.EmbeddingBagConfig
CONFIGS = [
    Config("users", 5, 11, ["user"]),
    Config("items", 16, 7, ["bought", "seen"], "mean"),
    Config("words", 5, 3, ["word"]),
]


def features(rng, bags=6, weights=False):
    lengths = rng.integers(0, 4, 4 * bags)
    sizes = np.repeat([7, 11, 3, 7], bags)
    ids = np.concatenate([rng.integers(0, n, k) for n, k in zip(sizes, lengths, strict=True)])
    factors = rng.random(ids.size).astype(np.float32) if weights else None
    keys = ["bought", "user", "word", "seen"]
    return wf.nn.KeyedJaggedTensor(keys, ids, lengths, weights=factors)


def dense(optimizer, parameters):
    """The optimizer of whole tables that does the same where each row has a gradient."""
    if isinstance(optimizer, SGD):
        return wf.optim.SGD(parameters, lr=optimizer.lr)
    return wf.optim.Adagrad(
        parameters, optimizer.lr, initial_accumulator_value=0.1, eps=optimizer.eps
    )


@pytest.mark.parametrize("optimizer", [SGD(0.5), Adagrad(0.5)])
@pytest.mark.parametrize("threads", [1, 3])
def test_fused_equals_bags_and_an_optimizer(optimizer, threads):
    rng = np.random.default_rng(0)
    plain = wf.nn.EmbeddingBagCollection(CONFIGS)
    fused = wf.nn.EmbeddingBagCollection(CONFIGS, optimizer, threads)
    for config in CONFIGS:
        fused.rows(config.name)[...] = plain.get_submodule(config.name).weight.detach().numpy()
    rule = dense(optimizer, plain.parameters())
    for _ in range(3):
        given = features(rng)
        x, y = plain(given), fused(given)
        assert x.keys == y.keys == ["user", "bought", "seen", "word"]
        np.testing.assert_allclose(y.values.detach().numpy(), x.values.detach().numpy(), atol=1e-5)
        scale = wf.tensor(rng.standard_normal(tuple(x.values.shape)), dtype=wf.float32)
        rule.zero_grad()
        for made in (x, y):
            (made.values * scale).sum().backward()
        rule.step()
        for config in CONFIGS:
            np.testing.assert_allclose(
                fused.rows(config.name), plain.get_submodule(config.name).weight.detach().numpy(),
                atol=2e-5, err_msg=config.name,
            )  # fmt: skip


@pytest.mark.parametrize("optimizer", [SGD(0.5), Adagrad(), Adam(), FTRL()])
def test_threads_change_no_bit_and_state_is_restored(optimizer):
    rng = np.random.default_rng(1)
    whole = Config("big", 200, 5, ["bought", "user", "word", "seen"])
    one = wf.nn.EmbeddingBagCollection([Config("w", 200, 11, whole.feature_names)], optimizer, 1)
    many = wf.nn.EmbeddingBagCollection([Config("w", 200, 11, whole.feature_names)], optimizer, 4)
    many.load_state_dict(one.state_dict())
    for _ in range(2):
        given = features(rng, weights=True)
        for made in (one, many):
            y = made(given)["user"] if made is one else made(given).to_dict()["user"]
            (y * y).sum().backward()
        np.testing.assert_array_equal(one.rows("w"), many.rows("w"))
    copied = copy.deepcopy(one)
    for made in (one, copied):
        made(given).values.sum().backward()
    np.testing.assert_array_equal(one.rows("w"), copied.rows("w"))
    many.load_state_dict(one.state_dict())
    for made in (one, many):
        made(given).values.sum().backward()
    np.testing.assert_array_equal(one.rows("w"), many.rows("w"))


def test_inputs():
    made = wf.nn.EmbeddingBagCollection([Config("t", 2, 4, ["f", "g"])], SGD(1.0))
    made.rows("t")[...] = np.arange(8).reshape(4, 2)
    pairs = {"f": wf.tensor([[0, 1], [2, 2]]), "g": (wf.tensor([3]), wf.tensor([0, 1]))}
    assert made(pairs).values.tolist() == [[2, 4, 6, 7], [8, 10, 0, 0]]
    with wf.no_grad():
        assert not made(pairs).values.requires_grad
    made.lr = 0.0
    made(pairs).values.sum().backward()
    assert made.rows("t").ravel().tolist() == list(range(8))
    assert not list(made.parameters())


def test_what_is_refused():
    made = wf.nn.EmbeddingBagCollection([Config("t", 2, 4, ["f"])], SGD())
    with pytest.raises(
        OutOfRangeError, match=r"table 't': expected ids from 0 to 3, got 4 in bag 1"
    ):
        made({"f": [[0], [4]]})
    with pytest.raises(OutOfRangeError, match=r"got -1 in bag 0"):
        made({"f": [[-1], [0]]})
    with pytest.raises(ShapeError, match=r"expected ids \(bags, size\), or \(ids, offsets\)"):
        made({"f": [0, 1]})
    with pytest.raises(ArgumentError, match="expected integers, got float64"):
        made({"f": [[0.5]]})
    with pytest.raises(ArgumentError, match="expected features among g, got 'f'"):
        made(wf.nn.KeyedJaggedTensor(["g"], [1], [1]))
    with pytest.raises(ShapeError, match="with 2 ids in all, got 1 bags and ids 0 to 3"):
        wf.nn.KeyedJaggedTensor(["f"], [1, 2], [3])
    with pytest.raises(ArgumentError, match="expected features of different names, got f"):
        wf.nn.EmbeddingBagCollection([Config("t", 2, 4, ["f"]), Config("u", 2, 4, ["f"])])
    with pytest.raises(ArgumentError, match="expected pooling sum or mean, got 'max'"):
        Config("t", 2, 4, ["f"], "max")
    with pytest.raises(ArgumentError, match="expected a table among t, got 'x'"):
        made.rows("x")
    state = made.state_dict()
    other = wf.nn.EmbeddingBagCollection([Config("t", 2, 5, ["f"])], SGD())
    with pytest.raises(ShapeError, match=r"t.weight: expected \(5, 2\), got \(4, 2\)"):
        other.load_state_dict(state)
