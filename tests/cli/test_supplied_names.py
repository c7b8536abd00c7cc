"""Names that only programs for PyTorch ask for: profiles, storages, default types."""

import ast
import copy
import json

import pytest

import weft as wf
from weft.errors import ConfigError, DataError
from weft.mirror.lacking import same_as
from weft.mirror.mirror import found, has
from weft.mirror.supplied import jit, profiler, reduction, testing, torch
from weft.mirror.uses import uses


def test_a_profile_has_blocks_and_steps(tmp_path):
    done = []
    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with profiler.profile(schedule=plan, on_trace_ready=done.append) as found:
        for _ in range(6):
            with profiler.record_function("work"):
                x = wf.ones(8, 8) @ wf.ones(8, 8)
            found.step()
    assert done == [found] and x.sum().item() == 512
    times = {event.key: event for event in found.key_averages()}
    assert times["work"].count == 2 and times["work"].cpu_time_total > 0
    assert {"ProfilerStep#2", "ProfilerStep#3"} <= times.keys() and "ProfilerStep#4" not in times
    assert "work" in found.key_averages().table(sort_by="cpu_time_total", row_limit=9)
    found.export_chrome_trace(str(tmp_path / "trace.json"))
    names = {e["name"] for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert "work" in names


def test_a_scripted_module_shares_parameters_and_is_saved(tmp_path):
    net = wf.nn.Sequential(wf.nn.Linear(3, 2), wf.nn.Dropout()).eval()
    scripted, x = jit.trace(net, wf.ones(1, 3)), wf.randn(4, 3)
    assert isinstance(scripted, jit.ScriptModule) and isinstance(scripted, wf.nn.Sequential)
    assert scripted[0].weight is net[0].weight and jit.freeze(scripted) is scripted
    copied = copy.deepcopy(scripted)
    copied[0].weight.data.zero_()
    for module in (scripted, copied):
        module.save(tmp_path / "net.pt")
        found = jit.load(tmp_path / "net.pt", map_location="cpu")
        assert isinstance(found, jit.RecursiveScriptModule) and not found.training
        assert found(x).tolist() == module(x).tolist()
    assert scripted(x).tolist() == net(x).tolist() != copied(x).tolist()
    assert jit.script(abs) is abs


def test_what_programs_ask_of_tensors_and_defaults(tmp_path):
    x = wf.zeros(2, 3)
    assert x[1:].untyped_storage() == x.untyped_storage() and x.untyped_storage().nbytes() == 24
    assert x.storage().size() == 6
    torch.set_default_tensor_type(wf.DoubleTensor)
    assert wf.ones(1).dtype is wf.float64
    torch.set_default_tensor_type("torch.FloatTensor")
    assert wf.ones(1).dtype is wf.float32
    with pytest.raises(ConfigError, match="there is no CUDA device"):
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
    testing.assert_close({"a": [x + 1e-6]}, {"a": [x]})
    with pytest.raises(AssertionError, match="1 of 6 elements differ"):
        testing.assert_close(x.index_put((wf.tensor(0), wf.tensor(0)), wf.tensor(1.0)), x)
    with wf.device("meta"):
        net = wf.nn.Linear(2, 2)
    assert net.to_empty(device="cpu").weight.shape == (2, 2)
    wf.save(net, tmp_path / "net")
    assert wf.equal(jit.load(tmp_path / "net").weight, net.weight)
    wf.save(wf.float32, tmp_path / "dtype")
    assert wf.load(tmp_path / "dtype") is wf.float32  # needs no trust
    with pytest.raises(DataError, match="weights_only=False"):
        wf.load(tmp_path / "net")
    with (tmp_path / "net").open("rb") as file:
        assert isinstance(wf.load(file, weights_only=False), wf.nn.Linear)


def test_conditional_expressions_are_read():
    text = "import torch\nx = torch.foo() if torch.cuda.is_available() else torch.bar()\n"
    assert [use.missing for use in uses(ast.parse(text)) if use.missing] == [
        "torch.bar: Weft has none"
    ]


def test_programs_derive_from_what_layers_derive_from():
    norm, loss = (
        found("torch.nn.modules.batchnorm._BatchNorm"),
        found("torch.nn.modules.loss._Loss"),
    )

    class AnyRank(norm):
        def _check_input_dim(self, input):
            assert input.ndim > 1

    class Scaled(loss):
        def __init__(self, factor, size_average=None, reduce=None, reduction="mean"):
            super().__init__(size_average, reduce, reduction)
            self.factor = factor

        def forward(self, x):
            return x.mean() * self.factor if self.reduction == "mean" else x * self.factor

    class Weighted(found("torch.nn.modules.loss._WeightedLoss")):
        def forward(self, x):
            return (x * self.weight).sum()

    x = wf.arange(12.0).reshape(2, 3, 2)
    assert AnyRank(3)(x).tolist() == wf.nn.BatchNorm1d(3)(x).tolist()
    assert Scaled(2.0)(x).item() == 11 and Scaled(2.0, reduce=False).reduction == "none"
    weighted = Weighted(wf.tensor([1.0, 2.0]))
    assert weighted(wf.ones(2)).item() == 3 and list(weighted.state_dict()) == ["weight"]
    prelu = wf.nn.PReLU(2, init=0.5)
    prelu.weight.data.zero_()
    prelu.reset_parameters()
    assert prelu.weight.tolist() == [0.5, 0.5]


def test_modules_have_what_they_import_for_themselves():
    assert same_as("torch.nn.modules.batchnorm.F") == "torch.nn.functional" and not has("torch.F")
    assert same_as("torch.nn.functional._Reduction") == "torch.nn._reduction"
    assert found("torch.nn.modules.conv._pair")(3) == (3, 3)
    assert found("torch.nn.modules.module._addindent")("a\nb", 2) == "a\n  b"
    clones = found("torch.nn.modules.transformer._get_clones")(wf.nn.Linear(2, 2), 2)
    assert clones[0].weight is not clones[1].weight
    sizes = found("torch.nn.modules.utils._list_with_default")
    assert sizes([None, 3], [8, 7, 5]) == [7, 3] and sizes(4, [8]) == 4
    with pytest.raises(ValueError, match="at least 3"):
        sizes([1, 2], [8, 7])
    with pytest.raises(AssertionError, match="null"):
        found("torch.jit._unwrap_optional")(None)
    assert found("torch.jit._unwrap_optional")(0) == 0
    draws = found("torch.distributions.utils._standard_normal")(wf.ones(2, 3).shape, wf.float64)
    assert draws.shape == (2, 3) and draws.dtype is wf.float64
    with pytest.warns(UserWarning, match="use reduction=.sum."):
        assert reduction.legacy_get_enum(False, None) == 2
    assert reduction.get_enum("none") == 0
    with pytest.raises(ValueError, match="median is not a valid value"):
        reduction.get_enum("median")
