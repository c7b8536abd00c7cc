"""State dicts of modules with custom save and load functions."""

import tracemalloc

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import StateError


class Doubling(nn.Module):
    """Version 2 of a module that kept half of its factor under another name in version 1."""

    _version = 2

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(wf.ones(2))

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        if local_metadata.get("version", 1) < 2:
            state_dict[f"{prefix}factor"] = state_dict.pop(f"{prefix}half") * 2
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def test_state_dicts_say_the_version_of_each_module():
    state = nn.Sequential(Doubling(), nn.BatchNorm1d(2)).state_dict()
    assert state._metadata == {"": {"version": 1}, "0": {"version": 2}, "1": {"version": 2}}


def test_an_older_state_is_turned_into_todays():
    model = nn.Sequential(Doubling())
    old = {"0.half": wf.tensor([3.0, 4.0])}
    model.load_state_dict(old)
    assert model[0].factor.tolist() == [6, 8] and list(old) == ["0.half"]
    model.load_state_dict(model.state_dict())
    assert model[0].factor.tolist() == [6, 8]


def test_what_follows_loading_sees_and_changes_what_was_loaded():
    class Scaled(nn.Linear):
        def _load_from_state_dict(self, *args):
            super()._load_from_state_dict(*args)
            with wf.no_grad():
                self.weight.mul_(10)

    layer = Scaled(1, 1, bias=False)
    layer.register_load_state_dict_post_hook(lambda m, keys: m.weight.data.add_(1))
    layer.load_state_dict({"weight": np.full((1, 1), 2.0, np.float32)})
    assert layer.weight.item() == 21


def test_a_module_that_loads_all_by_itself():
    class Own(nn.Linear):
        def _save_to_state_dict(self, destination, prefix, keep_vars):
            destination[f"{prefix}both"] = (self.weight.detach(), self.bias.detach())

        def _load_from_state_dict(self, state_dict, prefix, *_):
            weight, bias = state_dict[f"{prefix}both"]
            with wf.no_grad():
                self.weight.copy_(weight)
                self.bias.copy_(bias)

    one, two = nn.Sequential(Own(2, 1)), nn.Sequential(Own(2, 1))
    state = one.state_dict()
    assert list(state) == ["0.both"]
    two.load_state_dict(state)
    assert two[0].weight.tolist() == one[0].weight.tolist()


@pytest.mark.parametrize("assign", [False, True])
def test_a_failed_load_changes_nothing(assign):
    model = nn.Sequential(nn.Linear(1, 1), nn.LazyLinear(1), nn.Linear(1, 1))
    model[0].register_load_state_dict_post_hook(lambda m, keys: None)
    before, weight = model[0].weight.tolist(), model[0].weight
    state = {f"{i}.weight": np.full((1, 1), 9.0) for i in (0, 1)}
    with pytest.raises(StateError, match="Missing"):
        model.load_state_dict(state, assign=assign)
    assert model[0].weight is weight and weight.tolist() == before and weight.requires_grad
    assert isinstance(model[1].weight, nn.UninitializedParameter)
    assert model[1].weight.requires_grad
    y = model(wf.ones(1, 2)[:, :1])
    y.sum().backward()
    assert weight.grad is not None and model[1].weight.grad is not None


def test_hooks_by_their_older_names():
    layer, seen = nn.Linear(1, 1), []
    layer._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append(prefix))
    layer._register_load_state_dict_pre_hook(
        lambda module, state, *rest: seen.append(module), with_module=True
    )
    layer._register_state_dict_hook(lambda m, state, prefix, local: {"all": (local, state)})
    state = layer.state_dict()
    assert list(state) == ["all"] and state["all"][0] == {"version": 1}
    layer.load_state_dict(state["all"][1])
    assert seen == ["", layer]


def test_a_state_dict_by_position():
    found = {}
    state = nn.Linear(1, 1).state_dict(found, "a.", True)
    assert state is found and list(found) == ["a.weight", "a.bias"]
    assert isinstance(found["a.weight"], nn.Parameter)


def test_batch_norm_of_before_it_counted():
    layer = nn.BatchNorm1d(1)
    layer(wf.ones(2, 1))
    state = layer.state_dict()
    del state["num_batches_tracked"]
    with pytest.raises(StateError, match="num_batches_tracked"):
        layer.load_state_dict(state)
    layer.load_state_dict(dict(state))
    assert layer.num_batches_tracked.item() == 1


@pytest.mark.parametrize("watched", [False, True])
def test_loading_what_fits_keeps_no_second_model(watched):
    layer, count = 128 * 128 * 4, 16
    wf.empty_cache()  # what other tests have freed would serve without being traced
    tracemalloc.start()
    try:
        model = nn.Sequential(*[nn.Linear(128, 128) for _ in range(count)], nn.BatchNorm1d(128))
        state = {k: v.numpy() + 1 for k, v in model.state_dict().items()}
        if watched:  # a hook may raise, so everything that was loaded may have to be restored
            model.register_load_state_dict_post_hook(lambda module, keys: None)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        model.load_state_dict(state)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before > (count - 4) * layer if watched else peak - before < 4 * layer
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), state[name])
