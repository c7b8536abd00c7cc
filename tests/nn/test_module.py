"""Modules: registration, traversal, state dicts, modes, hooks, printing."""

import copy
import pickle

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ShapeError, StateError


class Block(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.one = nn.Linear(width, width)
        self.scale = nn.Parameter(np.ones(width, np.float32))
        self.register_buffer("seen", wf.Tensor(np.zeros(2, np.float32)))
        self.register_buffer("scratch", wf.Tensor(np.zeros(1, np.float32)), persistent=False)
        self.bias = None
        self.register_parameter("offset", None)

    def forward(self, x):
        return self.one(x) * self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


KEYS = [
    "blocks.0.scale", "blocks.0.seen", "blocks.0.one.weight", "blocks.0.one.bias",
    "blocks.1.scale", "blocks.1.seen", "blocks.1.one.weight", "blocks.1.one.bias",
    "head.1.weight", "head.1.bias",
]  # fmt: skip


def ones(*shape):
    return wf.Tensor(np.ones(shape, np.float32))


def values(module):
    return {name: np.array(x.array) for name, x in module.state_dict(keep_vars=True).items()}


def test_names_of_parameters_and_buffers():
    net = Net()
    assert list(net.state_dict(keep_vars=True)) == KEYS
    assert [n for n, _ in net.named_buffers()] == [
        "blocks.0.seen", "blocks.0.scratch", "blocks.1.seen", "blocks.1.scratch",
    ]  # fmt: skip
    assert [n for n, _ in net.named_parameters()] == [k for k in KEYS if "seen" not in k]
    assert [n for n, _ in net.named_modules()] == [
        "", "blocks", "blocks.0", "blocks.0.one", "blocks.1", "blocks.1.one", "head", "head.0",
        "head.1",
    ]  # fmt: skip
    assert [n for n, _ in net.named_children()] == ["blocks", "head"]
    assert [n for n, _ in net.blocks[0].named_parameters(recurse=False)] == ["scale"]
    assert len(list(net.modules())) == 9 and len(list(net.buffers())) == 4


def test_shared_parts_are_met_once():
    net = Net()
    net.head[1] = net.blocks[1] = net.blocks[0]
    assert [n for n, _ in net.named_parameters()] == KEYS[:1] + KEYS[2:4]
    assert len(net.state_dict(keep_vars=True)) == 12
    assert len(list(net.named_parameters(remove_duplicate=False))) == 9


def test_by_path():
    net = Net()
    assert net.get_submodule("blocks.1.one") is net.blocks[1].one
    assert net.get_submodule("") is net
    assert net.get_parameter("head.1.bias") is net.head[1].bias
    assert net.get_buffer("blocks.0.seen") is net.blocks[0].seen
    with pytest.raises(AttributeError, match="ModuleList has no submodule '7'"):
        net.get_submodule("blocks.7.one")
    with pytest.raises(AttributeError, match="has no parameter 'nothing'"):
        net.get_parameter("head.nothing")


def test_attributes():
    block = Block()
    assert block.bias is None and block.offset is None
    block.offset = nn.Parameter(np.zeros(3, np.float32))
    assert "offset" in dict(block.named_parameters()) and "offset" in dir(block)
    block.seen = ones(2)
    assert block.seen is dict(block.named_buffers())["seen"]
    block.one = None
    assert block.one is None and list(block.children()) == []
    del block.offset
    with pytest.raises(AttributeError, match="Block: there is no attribute 'offset'"):
        block.offset
    with pytest.raises(TypeError, match="expected a Parameter or None"):
        block.scale = ones(3)
    with pytest.raises(KeyError, match="taken already"):
        block.register_buffer("scale", ones(1))
    with pytest.raises(KeyError, match="no dot"):
        block.add_module("a.b", nn.ReLU())
    block.extra = ones(1)  # a plain tensor is no part of the state
    assert "extra" not in block.state_dict(keep_vars=True)


class Hasty(nn.Module):
    def __init__(self):
        self.linear = nn.Linear(2, 2)


class Forgetful(nn.Module):
    def __init__(self):
        pass

    def forward(self, x):
        return self.linear(x)


def test_super_init_forgotten():
    with pytest.raises(AttributeError, match=r"call super\(\).__init__\(\) first"):
        Hasty()
    with pytest.raises(AttributeError, match=r"Forgetful: .*super\(\).__init__\(\) first"):
        Forgetful()(ones(1))
    with pytest.raises(NotImplementedError, match="forward is not defined"):
        nn.Module()(1)


def test_state_dict_round_trip():
    a, b = Net(), Net()
    assert repr(b.load_state_dict(values(a))) == "<All keys matched successfully>"
    for name, array in values(a).items():
        np.testing.assert_array_equal(values(b)[name], array)
    b.load_state_dict(a.state_dict())
    x = ones(2, 3)
    np.testing.assert_array_equal(a(x).array, b(x).array)


def test_state_dict_faults_are_all_listed_and_nothing_is_loaded():
    net, state = Net(), values(Net())
    before = values(net)
    state.pop("head.1.bias")
    state["head.9.bias"] = np.zeros(1)
    state["blocks.0.scratch"] = np.zeros(1)
    state["blocks.0.scale.more"] = np.zeros(1)
    state["blocks.1.one.weight"] = np.zeros((4, 3), np.float32)
    with pytest.raises(StateError) as caught:
        net.load_state_dict(state)
    assert str(caught.value).split(" (created")[0] == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "head.1.bias".\n'
        '\tUnexpected key(s) in state_dict: "blocks.0.scratch", "blocks.0.scale.more", '
        '"head.9.bias".\n'
        "\tsize mismatch for blocks.1.one.weight: expected (3, 3) as in the model, got (4, 3) "
        "from the state dict"
    )
    for name, array in values(net).items():
        np.testing.assert_array_equal(array, before[name])
    state.pop("blocks.1.one.weight")
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["blocks.1.one.weight", "head.1.bias"]
    assert len(found.unexpected_keys) == 3


def test_state_dict_keeps_types_unless_assigned():
    layer = nn.Linear(2, 2)
    state = {k: v.astype(np.float64) for k, v in values(layer).items()}
    layer.load_state_dict(state)
    assert layer.weight.dtype is wf.float32
    weight = layer.weight
    layer.load_state_dict(state, assign=True)
    assert layer.weight.dtype is wf.float64 and layer.weight is not weight
    assert layer.weight.requires_grad


def test_loading_keeps_the_tensor_and_its_gradient_path():
    layer = nn.Linear(2, 1, bias=False)
    layer.load_state_dict({"weight": np.array([[2.0, 3.0]], np.float32)})
    layer(ones(4, 2)).backward(np.ones((4, 1), np.float32))
    np.testing.assert_array_equal(layer.weight.grad.array, [[4, 4]])


def test_extra_state_and_hooks_of_the_state_dict():
    class Counting(nn.Linear):
        steps = 3

        def get_extra_state(self):
            return {"steps": self.steps}

        def set_extra_state(self, state):
            self.steps = state["steps"]

    a, b = Counting(2, 2), Counting(2, 2)
    a.steps = 8
    handle = a.register_state_dict_post_hook(lambda m, s, p, _: s.update(more=1))
    state = a.state_dict(keep_vars=True)
    assert list(state) == ["weight", "bias", "_extra_state", "more"]
    handle.remove()
    b.register_load_state_dict_pre_hook(lambda m, s, *_: s.pop("more"))
    b.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    b.load_state_dict(state)
    assert b.steps == 8 and "more" in state


def test_modes():
    net = Net()
    assert net.training and net.eval() is net and not net.blocks[1].one.training
    assert net.train().head.training
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(ones(1, 3)).backward(np.ones((1, 2), np.float32))
    net.zero_grad(set_to_none=False)
    assert not net.head[1].bias.grad.array.any()
    net.zero_grad()
    assert net.head[1].bias.grad is None
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen[-1] == "Net" and seen[0] == "Linear" and len(seen) == 9


def test_element_types():
    net = Net()
    net.register_buffer("count", wf.from_numpy(np.zeros((), np.int64)))
    weight = net.head[1].weight
    assert net.double() is net and net.head[1].weight is weight
    assert weight.dtype is wf.float64 and weight.requires_grad and net.count.dtype is wf.int64
    assert net.to("cpu").to(wf.float32).head[1].weight.dtype is wf.float32
    assert net.to(np.float32).bfloat16().blocks[0].seen.dtype is wf.bfloat16
    net.float()(ones(1, 3)).backward(np.ones((1, 2), np.float32))
    with pytest.raises(TypeError, match="expected a floating or complex element type"):
        net.to(wf.int32)


def test_views_take_another_element_type_apart_from_what_they_show():
    rows, flat = ones(2, 3), ones(6)
    layer = nn.Linear(3, 2, bias=False)
    layer.register_buffer("mask", rows[1])
    layer.weight = nn.Parameter(flat.view(2, 3))
    layer.double()
    (layer(layer.mask) * 2).sum().backward()
    assert layer.mask.dtype is layer.weight.grad.dtype is wf.float64
    rows.zero_()
    flat.zero_()
    assert layer.mask.tolist() == [1, 1, 1] and layer.weight.sum().item() == 6


def test_forward_hooks():
    layer, seen = nn.Linear(2, 2), []
    first = layer.register_forward_pre_hook(lambda m, args: (args[0] * 0,))
    layer.register_forward_hook(lambda m, args, y: seen.append(args[0].array.sum()))
    last = layer.register_forward_hook(lambda m, args, y: y + 1, prepend=True)
    y = layer(ones(1, 2))
    np.testing.assert_allclose(y.array[0], layer.bias.array + 1)
    assert seen == [0]
    first.remove()
    last.remove()
    layer(ones(1, 2))
    assert seen == [0, 2]
    with layer.register_forward_pre_hook(lambda m, a, k: (a, {}), with_kwargs=True):
        layer(ones(1, 2), nothing=1)
    layer.register_forward_hook(lambda m, a, y: seen.append(y), always_call=True)
    with pytest.raises(ShapeError, match="linear: expected an input whose last dimension"):
        layer(ones(1, 3))
    assert seen[-1] is None


def test_backward_hooks():
    layer, seen = nn.Linear(2, 1, bias=False), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    layer(ones(3, 2)).backward(np.ones((3, 1), np.float32))
    (gi, go), *_ = seen
    assert gi == (None,) and go[0].shape == (3, 1)
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    x = ones(3, 2).requires_grad_()
    layer(x).backward(np.ones((3, 1), np.float32))
    np.testing.assert_allclose(x.grad.array[0], layer.weight.array[0] * 20, rtol=1e-6)
    assert seen[-1][1][0].array[0, 0] == 2
    two, left, right = nn.Bilinear(2, 2, 1), ones(3, 2), ones(3, 2)
    left.requires_grad_()
    right.requires_grad_()
    two.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2, gi[1] * 3))
    two(left, right).sum().backward()
    weight = two.weight.array[0]
    np.testing.assert_allclose(left.grad.array[0], 2 * weight.sum(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(right.grad.array[0], 3 * weight.sum(0), rtol=1e-5, atol=1e-6)


def test_copies_and_other_processes():
    net = Net()
    twin = copy.deepcopy(net)
    net.head[1].weight.grad = ones(2, 3)
    twin.load_state_dict({k: v * 0 for k, v in values(net).items()})
    assert net.head[1].weight.array.any() and not twin.head[1].weight.array.any()
    assert twin.head[1].weight.requires_grad and twin.head[1].weight.grad is None
    sent = pickle.loads(pickle.dumps(net.head))
    np.testing.assert_array_equal(sent[1].weight.array, net.head[1].weight.array)


def test_parameters_carry_attributes():
    p = nn.Parameter(ones(2), requires_grad=False)
    p.tag = "mine"
    assert copy.deepcopy(p).tag == "mine" and not p.requires_grad
    assert type(p * 2) is wf.Tensor
    nn.init.zeros_(p)
    assert not p.array.any()


def test_printing():
    net = Net()
    assert repr(nn.Sequential()) == "Sequential()"
    assert repr(net.head) == (
        "Sequential(\n  (0): ReLU()\n  (1): Linear(in_features=3, out_features=2, bias=True)\n)"
    )
    assert repr(net).splitlines()[1:4] == [
        "  (blocks): ModuleList(",
        "    (0-1): 2 x Block(",
        "      (one): Linear(in_features=3, out_features=3, bias=True)",
    ]


def test_containers():
    row = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert isinstance(row[1:], nn.Sequential) and len(row[1:]) == 2
    del row[0]
    assert list(row._modules) == ["0", "1"] and isinstance(row[-1], nn.Sigmoid)
    row.insert(0, nn.GELU()).append(nn.ELU())
    assert [type(m).__name__ for m in row] == ["GELU", "Tanh", "Sigmoid", "ELU"]
    assert isinstance(row.pop(0), nn.GELU) and len(row + row) == 6
    named = nn.Sequential({"a": nn.ReLU(), "b": nn.Tanh()})
    assert named.a is named[0]
    many = nn.ModuleList([nn.ReLU()])
    many += [nn.Tanh(), nn.ELU()]
    many.insert(1, nn.GELU())
    assert [type(m).__name__ for m in many] == ["ReLU", "GELU", "Tanh", "ELU"]
    assert isinstance(many[1:], nn.ModuleList) and isinstance(many.pop(), nn.ELU)
    with pytest.raises(IndexError, match="ModuleList: expected an index below 3, got 5"):
        many[5]
    by_key = nn.ModuleDict({"x": nn.ReLU()})
    by_key["y"] = nn.Tanh()
    assert "y" in by_key and list(by_key) == ["x", "y"] and len(by_key.values()) == 2
    some = nn.ParameterList([np.ones(2, np.float32), ones(2)])
    assert isinstance(some[1], nn.Parameter) and len(list(some.parameters())) == 1
    keyed = nn.ParameterDict({"w": ones(2)})
    assert [n for n, _ in keyed.named_parameters()] == ["w"] and keyed.get("v") is None


def test_a_sequence_several_times():
    once = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    twice = 2 * once
    assert list(twice) == [*once, *once] and len(once) == 2
    once *= 3
    assert len(once) == 6
    for factor, kind in ((0, ValueError), (1.5, TypeError)):
        with pytest.raises(kind, match="a factor from 1"):
            once * factor


def test_parameters_by_key_as_a_dict():
    one, two = nn.Parameter(ones(1)), nn.Parameter(ones(2))
    first = nn.ParameterDict({"a": one, "b": two})
    assert list(reversed(first)) == ["b", "a"] and first.copy()["a"] is one
    assert first.setdefault("a", two) is one and first.setdefault("c", two) is two
    assert list(first.parameters()) == [one, two]
    assert first.popitem() == ("c", two) and list(first) == ["a", "b"]
    joined = first | {"b": one, "d": two}
    assert list(joined) == ["a", "b", "d"] and joined["b"] is one and first["b"] is two
    assert list({"z": two} | first) == ["z", "a", "b"]
    first |= {"e": one}
    assert list(first) == ["a", "b", "e"]
    assert dict(first.fromkeys(["x", "y"]).items()) == {"x": None, "y": None}
    with pytest.raises(KeyError, match="no entry"):
        nn.ParameterDict().popitem()


def test_a_sequence_takes_more():
    module = nn.Sequential(nn.ReLU())
    same = module
    module += nn.Sequential(nn.Tanh(), nn.Sigmoid())
    assert module is same and len(module) == 3 and isinstance(module[2], nn.Sigmoid)
