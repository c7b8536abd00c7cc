"""Global module hooks, and invalid results of hooks."""

import pytest

import weft as wf
from weft import nn


def test_global_hooks_run_before_a_modules_own():
    calls = []
    module = nn.Sequential(nn.Sigmoid())
    handles = [
        nn.register_module_forward_pre_hook(lambda m, args: calls.append("before")),
        nn.register_module_forward_hook(lambda m, args, y: calls.append("after")),
        nn.register_module_full_backward_pre_hook(lambda m, g: calls.append("back")),
        nn.register_module_full_backward_hook(lambda m, gi, go: calls.append("passed")),
        module[0].register_forward_pre_hook(lambda m, args: calls.append("own before")),
        module[0].register_full_backward_hook(lambda m, gi, go: calls.append("own passed")),
    ]
    try:
        y = module[0](wf.ones(2, requires_grad=True))
        assert calls == ["before", "own before", "after"]
        y.sum().backward()
        assert calls[3:] == ["back", "passed", "own passed"]
    finally:
        for handle in handles:
            handle.remove()
    calls.clear()
    module(wf.ones(2))
    assert calls == []


def test_global_hooks_change_inputs_and_outputs():
    module = nn.Identity()
    x = wf.ones(2, requires_grad=True)
    with (
        nn.register_module_forward_pre_hook(lambda m, args: args[0] * 3),
        nn.register_module_forward_hook(lambda m, args, y: -y),
        nn.register_module_backward_hook(lambda m, gi, go: (gi[0] * 2,)),
    ):
        y = module(x)
        y.sum().backward()
    assert y.tolist() == [-3.0, -3.0]
    assert x.grad.tolist() == [-6.0, -6.0]


def test_a_hook_of_all_modules_that_is_always_called():
    def fails(m, args):
        raise KeyError("no")

    seen = []
    module = nn.Identity()
    module.register_forward_pre_hook(fails)
    with (
        nn.register_module_forward_hook(lambda m, a, y: seen.append(y), always_call=True),
        pytest.raises(KeyError),
    ):
        module(wf.ones(1))
    assert seen == [None]


@pytest.mark.parametrize("count", [0, 2])
def test_another_number_of_gradients(count):
    module = nn.Sigmoid()
    module.register_full_backward_hook(lambda m, gi, go: gi * count)
    with pytest.raises(RuntimeError, match=f"got {count}, but expected 1"):
        module(wf.ones(2, requires_grad=True)).sum().backward()


def test_a_gradient_where_no_input_needs_one():
    module = nn.Linear(2, 2)
    module.register_full_backward_hook(lambda m, gi, go: (wf.ones(1, 2),))
    with pytest.raises(RuntimeError, match="no input requires gradient"):
        module(wf.ones(1, 2)).sum().backward()


def test_an_output_that_is_no_tensor_warns():
    class Named(nn.Module):
        def forward(self, x):
            return {"x": x}

    module = Named()
    module.register_full_backward_hook(lambda m, gi, go: None)
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors"):
        module(wf.ones(1, requires_grad=True))


def test_a_handle_knows_its_hooks():
    module = nn.Identity()
    handle = module.register_forward_hook(lambda m, a, y: None)
    assert handle.id in handle.hooks_dict_ref()
    handle.remove()
    assert handle.id not in handle.hooks_dict_ref()


def test_hooks_of_what_is_registered():
    seen = []
    named = [
        nn.register_module_parameter_registration_hook,
        nn.register_module_buffer_registration_hook,
        nn.register_module_module_registration_hook,
    ]
    handles = [register(lambda m, name, entry: seen.append(name)) for register in named]
    module = nn.Sequential(nn.BatchNorm1d(2))
    module[0].running_mean = wf.ones(2)
    for handle in handles:
        handle.remove()
    nn.Linear(1, 1)
    statistics = ["running_mean", "running_var", "num_batches_tracked"]
    assert seen == ["weight", "bias", *statistics, "0", "running_mean"]


def test_a_hook_registers_something_else():
    replaced = nn.Identity()
    with nn.register_module_module_registration_hook(lambda m, name, entry: replaced):
        module = nn.Sequential(nn.Linear(2, 2))
    assert module[0] is replaced


class Both(nn.Module):
    def forward(self, x, y):
        return x * 2, y * 3


def test_backward_hooks_see_each_pass_for_itself_and_all_gradients_at_once():
    module, seen = Both(), []
    module.register_full_backward_pre_hook(lambda m, gs: tuple(g and g * 10 for g in gs))
    module.register_full_backward_hook(
        lambda m, xs, ys: seen.append([None if g is None else g.item() for g in (*xs, *ys)])
    )
    x, y = (wf.ones(1, requires_grad=True) for _ in range(2))
    one, other = module(x, y)
    (one + other).backward(retain_graph=True)
    (one + other * 2).backward(retain_graph=True)
    one.backward()
    assert seen == [[20, 30, 10, 10], [20, 60, 10, 20], [20, 0, 10, None]]
