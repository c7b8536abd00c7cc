"""Results that depend on parameters alone are kept while the parameters are unchanged."""

import copy
import gc
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
from weft import config, nn, optim
from weft.eager.record.run import tier_choice
from weft.eager.record.run.parameter_cache import MOST_KEEPING
from weft.runtime.executable import Executable


def _network():
    return nn.Sequential(nn.Conv2d(3, 40, 1), nn.BatchNorm2d(40), nn.ReLU(), nn.Conv2d(40, 5, 1))


def _expected(model, x):
    """What the network gives in NumPy, from its parameters as a state dict tells them."""
    p = {name: np.array(value.tolist(), np.float64) for name, value in model.state_dict().items()}
    y = np.einsum("nchw,dc->ndhw", x, p["0.weight"][:, :, 0, 0]) + p["0.bias"][:, None, None]
    scale = p["1.weight"] / np.sqrt(p["1.running_var"] + 1e-5)
    y = (y - p["1.running_mean"][:, None, None]) * scale[:, None, None]
    y = np.maximum(y + p["1.bias"][:, None, None], 0)
    return np.einsum("nchw,dc->ndhw", y, p["3.weight"][:, :, 0, 0]) + p["3.bias"][:, None, None]


X = np.random.default_rng(0).standard_normal((1, 3, 9, 9)).astype(np.float32)


def _check(model, call=None):
    with wf.no_grad():
        found = (call or model)(wf.tensor(X)).numpy()
    np.testing.assert_allclose(found, _expected(model, X), rtol=2e-4, atol=2e-5)


def _train(model):
    model.train()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model(wf.randn(4, 3, 5, 5)).square().mean().backward()
    optimizer.step()
    model.eval()


def _see_batches(model):
    model.train()
    with wf.no_grad():
        model(wf.randn(4, 3, 5, 5)).sum().item()
    model.eval()


def _load(model):
    other = _network()
    _see_batches(other)
    model.load_state_dict(other.state_dict())


def _assign_data(model):
    model[0].weight.data = wf.randn(40, 3, 1, 1)


def _change_assigned_data(model):
    data = wf.randn(40, 3, 1, 1)
    model[0].weight.data = data
    _check(model)
    data.numpy()[3:7] = 0.5


def _multiply(model):
    with wf.no_grad():
        model[0].weight.mul_(1.5)


def _put(model):
    with wf.no_grad():
        model[3].weight[2] = 0.25


def _put_through_view(model):
    model[3].weight.data[1] = -0.5


def _write_numpy(model):
    model[0].weight.detach().numpy()[5] = 2.0


def _write_buffer(model):
    np.asarray(model[1].running_mean)[...] += 0.5


def _fill_buffer(model):
    model[1].running_var.fill_(2.0)


def _replace_parameter(model):
    model[0].weight = nn.Parameter(wf.randn(40, 3, 1, 1))


def _replace_by_array(model):
    array = np.ones((40, 3, 1, 1), np.float32)
    model[0].weight = nn.Parameter(array)
    _check(model)
    array[...] = -1.0


def _lend_buffer(model):
    array = np.ones(40, np.float32)
    model[1].register_buffer("running_mean", wf.from_numpy(array))
    _check(model)
    array[...] = -1.0


def _jit_change(model):
    @wf.func.jit
    def change(factor):
        with wf.no_grad():
            model[0].weight.mul_(factor)

    change(1.25)


CHANGES = [
    _train, _see_batches, _load, _assign_data, _change_assigned_data, _multiply, _put,
    _put_through_view, _write_numpy, _write_buffer, _fill_buffer, _replace_parameter,
    _replace_by_array, _lend_buffer, _jit_change,
]  # fmt: skip


@at_most(8)
@given(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=5), st.integers(1, 3))
def test_every_change_is_seen(changes, runs):
    with config.override(compile=True):
        model = _network().eval()
        for change in [lambda _: None, *changes]:
            change(model)
            for _ in range(runs):
                _check(model)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(change):
    with config.override(compile=True):
        model = _network().eval()
        _check(model)
        _check(model)
        change(model)
        _check(model)
        _check(model)


IN_PLACE = [c for c in CHANGES if c not in (_replace_parameter, _replace_by_array, _lend_buffer)]
"""Those that a function sees which was traced before."""


@pytest.mark.parametrize("change", IN_PLACE)
def test_a_traced_function_sees_a_change(change):
    with config.override(compile=True):
        model = _network().eval()
        call = wf.func.jit(model)
        for _ in range(3):
            _check(model, call)
        change(model)
        for _ in range(3):
            _check(model, call)


def test_arguments_of_a_traced_function_may_be_what_it_captures():
    w, other = wf.randn(3, 3), wf.randn(3, 3)
    call = wf.func.jit(lambda x, y: x @ w + y)
    with config.override(compile=True):
        for x, y in [(other, other), (other, w), (w, w), (w, other), (other, other), (w, w)] * 2:
            expected = x.numpy() @ w.numpy() + y.numpy()
            np.testing.assert_allclose(call(x, y).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_traced_functions_of_equal_models_take_turns():
    with config.override(compile=True):
        models = [_network().eval() for _ in range(2)]
        calls = [wf.func.jit(model) for model in models]
        for i in [0, 0, 1, 0, 1, 1, 0]:
            _check(models[i], calls[i])


def test_several_calls_of_a_traced_function_at_once():
    with config.override(compile=True), wf.no_grad():
        model = _network().eval()
        call = wf.func.jit(model)
        xs = [wf.randn(1, 3, 9, 9) for _ in range(4)]
        for _ in range(3):
            single = [call(x).numpy() for x in xs]
            ys = [call(x) for x in xs]
            sums = [call(x) + 1 for x in xs]
            for a, b, c in zip(single, ys, sums, strict=True):
                np.testing.assert_allclose(b.numpy(), a, rtol=1e-6)
                np.testing.assert_allclose(c.numpy(), a + 1, rtol=1e-6)


@pytest.fixture
def preludes(monkeypatch):
    """How often each program computed what it keeps."""
    runs = []
    before = Executable.launch

    def launch(self, arrays, memories, fresh=False, moved=None, departure=None):
        if self.blueprint.prelude and not fresh:
            runs.append(self)
        before(self, arrays, memories, fresh, moved, departure)

    monkeypatch.setattr(Executable, "launch", launch)
    monkeypatch.setattr(tier_choice, "_tiers", OrderedDict())
    with config.override(compile=True):
        yield runs


def test_the_prelude_runs_once_while_nothing_changes(preludes):
    model = _network().eval()
    for _ in range(4):
        _check(model)
    assert len(preludes) == 1
    assert preludes[0].blueprint.kept_bytes > 0
    _multiply(model)
    _check(model)  # another program: it multiplies too
    _check(model)
    _check(model)
    assert preludes.count(preludes[0]) == 2


def test_inputs_are_no_parameters(preludes):
    model, x = nn.ReLU(), wf.randn(3)
    for _ in range(3):
        model(x).numpy()
    assert not preludes


def test_nothing_is_kept_where_gradients_are_taken(preludes):
    model = _network().eval()
    for _ in range(3):
        model(wf.tensor(X)).sum().backward()
        model[0].weight.grad.numpy()
    assert not preludes


def test_two_models_take_turns(preludes):
    model = _network().eval()
    other = copy.deepcopy(model)
    _multiply(other)
    for _ in range(2):
        _check(model)
        _check(other)
    assert len(preludes) == 4


def test_a_model_that_is_gone_keeps_nothing(preludes):
    model = _network().eval()
    _check(model)
    executable = preludes[0]
    assert executable.kept is not None
    del model
    gc.collect()
    assert executable.kept is None
    _check(_network().eval())


def test_few_programs_keep_something(preludes):
    model = _network().eval()
    with wf.no_grad():
        for size in range(1, 9):
            model(wf.randn(1, 3, size, 9)).numpy()
    assert sum(one.kept is not None for one in preludes) == MOST_KEEPING
    _check(model)
