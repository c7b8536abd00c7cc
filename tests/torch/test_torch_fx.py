"""`torch.fx` beside PyTorch's: the same nodes, and modules that compute the same."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import torch.fx

import weft as wf
from weft.mirror.supplied import fx
from weft.mirror.supplied.fx.proxy import TraceError
from weft.mirror.supplied.torch import check

HALVES = {"torch": torch.fx, "weft": fx}


def net(t: Any) -> Any:
    class Block(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin, self.w = t.nn.Linear(4, 4), t.nn.Parameter(t.ones(4))

        def forward(self, x: Any) -> Any:
            return t.relu(self.lin(x) + self.w.view(1, -1))

    class Net(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block, self.seq = Block(), t.nn.Sequential(t.nn.Linear(4, 4), t.nn.ReLU())
            self.register_buffer("b", t.ones(4))
            self.k = t.arange(4.0)

        def forward(self, input: Any, scale: float = 2.0) -> Any:
            rows, width = input.shape
            (check if t is wf else t._assert)(rows > 0, "empty")
            x = self.seq(self.block(input) * scale) - self.b
            y = t.cat([x, t.nn.functional.gelu(x)], 1).view(rows, 2, width)
            z = t.flatten(y, 1).chunk(2, dim=1)[0]
            z = t.nn.functional.dropout(z, 0.5, self.training)
            return {"out": (z * self.k).sum(dim=1), "more": [-x, 1 / (x.abs() + 1), x[:, :2]]}

    return Net().eval()


def numbers(x: Any) -> Any:
    if isinstance(x, dict):
        return {key: numbers(y) for key, y in x.items()}
    return [numbers(y) for y in x] if isinstance(x, list) else x.detach().numpy()


@pytest.fixture
def pair() -> dict[str, tuple[Any, Any, Any]]:
    theirs, ours = net(torch), net(wf)
    ours.load_state_dict({k: wf.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    return {"torch": (torch, theirs, torch.tensor(x)), "weft": (wf, ours, wf.tensor(x))}


def test_nodes_and_values_are_pytorchs(pair: Any) -> None:
    nodes, values = {}, {}
    for name, (_, model, x) in pair.items():
        traced = HALVES[name].symbolic_trace(model)
        traced.graph.lint()
        nodes[name] = [(n.op, n.name) for n in traced.graph.nodes]
        runs = [model(x), traced(x), HALVES[name].Interpreter(traced).run(x)]
        runs += [copy.deepcopy(traced)(x), traced(input=x, scale=3.0), model(x, 3.0)]
        values[name] = [numbers(y) for y in runs]
        parameters = {key for key, _ in traced.named_parameters()}
        assert parameters == {key for key, _ in model.named_parameters()}
    assert nodes["weft"] == nodes["torch"]
    for ours, theirs in zip(values["weft"], values["torch"], strict=True):
        np.testing.assert_allclose(ours["out"], theirs["out"], rtol=1e-4, atol=1e-6)
    same = values["weft"]
    for i, j in ((0, 1), (0, 2), (0, 3), (4, 5)):
        np.testing.assert_array_equal(same[i]["out"], same[j]["out"])


def test_a_graph_is_changed(pair: Any) -> None:
    outs = []
    for name, (library, model, x) in pair.items():
        traced = HALVES[name].symbolic_trace(model)
        for node in traced.graph.nodes:
            if node.target is library.relu:
                with traced.graph.inserting_after(node):
                    made = traced.graph.call_function(library.sigmoid, node.args)
                    node.replace_all_uses_with(made)
                with pytest.raises(RuntimeError):
                    traced.graph.erase_node(made)
                traced.graph.erase_node(node)
        output = next(n for n in reversed(traced.graph.nodes) if n.op == "output")
        output.args = (output.args[0]["out"],)
        count = len(traced.graph.nodes)
        assert traced.graph.eliminate_dead_code() and len(traced.graph.nodes) < count
        traced.recompile()
        outs.append(([n.name for n in traced.graph.nodes], numbers(traced(x))))
    assert outs[0][0] == outs[1][0]
    np.testing.assert_allclose(outs[0][1], outs[1][1], rtol=1e-4, atol=1e-6)


def count(x: Any) -> int:
    return len(x)


fx.wrap("count")


def test_what_needs_values_is_refused_or_wrapped() -> None:
    for function in (lambda x: x if x.sum() > 0 else -x, lambda x: [*x], lambda x: len(x)):
        with pytest.raises(TraceError):
            fx.symbolic_trace(function)
    traced = fx.symbolic_trace(lambda x: x + count(x))
    assert [n.name for n in traced.graph.nodes] == ["x", "count", "add", "output"]
    assert traced(wf.ones(3)).tolist() == [4.0] * 3
    assert count(wf.ones(2)) == 2
    concrete = fx.symbolic_trace(lambda x, twice: x * 2 if twice else x, {"twice": True})
    assert concrete(wf.ones(1), None).tolist() == [2.0]
    with pytest.raises(TraceError, match="have names"):
        fx.symbolic_trace(lambda *x: x[0])


def functions(library: Any) -> Any:
    def f(x, y, scale=2.0):  # type: ignore[no-untyped-def]
        a = library.cat([library.tanh(x), y]).sum()
        b = library.nn.functional.relu(library.cat([library.tanh(y), x]).sum(), inplace=False)
        return (-a + b.view(1, -1) * scale, a[..., None], x.shape, library.stack([x, y]))

    return f


def test_the_text_of_a_graph_is_pytorchs() -> None:
    codes = {n: HALVES[n].symbolic_trace(functions(t)).code for n, t in
             (("torch", torch), ("weft", wf))}  # fmt: skip
    assert codes["weft"] == codes["torch"]
    space: dict[str, Any] = {"torch": wf}
    exec(codes["weft"].strip(), space)
    x, y = wf.ones(2), wf.arange(2.0)
    ours = fx.symbolic_trace(functions(wf))(x, y)
    assert space["forward"](None, x, y)[0].tolist() == ours[0].tolist()


def rewriting(t: Any) -> tuple[Any, Any]:
    """A pattern, and what takes its place."""
    return lambda p, q: t.cat([t.tanh(p), q]).sum(), lambda p, q: t.cat([p, q]).amax() - 1


def test_parts_of_a_graph_are_replaced() -> None:
    texts, values = [], []
    for name, t in (("torch", torch), ("weft", wf)):
        traced = HALVES[name].symbolic_trace(functions(t))
        assert len(HALVES[name].replace_pattern(traced, *rewriting(t))) == 2
        texts.append(sorted(traced.code.split()))
        values.append(traced(t.ones(2), t.ones(2) * 3)[0].tolist())
    assert texts[0] == texts[1] and values[0] == values[1]


def test_calls_are_added_to_a_graph_by_proxies(capsys: Any) -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    graph.output((wf.tanh(x) + 1).node)
    assert fx.GraphModule({}, graph)(wf.zeros(1)).tolist() == [1.0]
    with pytest.raises(TraceError):
        bool(x)
    graph.print_tabular()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["opcode", "name", "target", "args", "kwargs"] and len(shown) == 6
