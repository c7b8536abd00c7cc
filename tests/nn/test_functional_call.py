"""`functional_call`: other tensors in place of a module's parameters, for one call."""

import pytest

import weft as wf
from weft import func, nn


class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(1, 1)
        self.register_buffer("seen", wf.zeros(1))
        self.scale = wf.ones(1)

    def forward(self, x):
        self.seen = self.seen + 1
        return self.inner(x) * self.scale + getattr(self, "more", 0)


def test_what_the_module_puts_there_is_given_back():
    module, first = Shifted(), wf.tensor([5.0])
    given = {"seen": first}
    func.functional_call(module, given, wf.ones(1, 1))
    assert given["seen"].item() == 6 and first.item() == 5 and module.seen.item() == 0


def test_attributes_and_what_the_module_has_not():
    module, x = Shifted(), wf.ones(1, 1)
    y = func.functional_call(module, {"scale": wf.zeros(1), "more": wf.tensor([7.0])}, x)
    assert y.tolist() == [[7]] and module.scale.item() == 1 and not hasattr(module, "more")
    with pytest.raises(RuntimeError, match="there is no 'more'"):
        func.functional_call(module, {"more": x}, x, strict=True)
    with pytest.raises(AttributeError, match="no submodule 'other'"):
        func.functional_call(module, {"other.weight": x}, x)


def test_a_parameter_that_the_module_has_not_is_one_meanwhile():
    class Counting(wf.nn.Module):
        def forward(self):
            return [name for name, _ in self.named_parameters()]

    module, more = Counting(), wf.nn.Parameter(wf.ones(1))
    assert func.functional_call(module, {"more": more}, ()) == ["more"] and module() == []


def test_none_in_place_of_a_bias():
    module, x = Shifted(), wf.ones(1, 1)
    given = {"inner.weight": wf.tensor([[3.0]]), "inner.bias": None}
    bias = module.inner.bias
    assert func.functional_call(module, given, x).tolist() == [[3]]
    assert module.inner.bias is bias


def test_what_is_no_tensor_raises():
    module, x = Shifted(), wf.ones(1, 1)
    module.word = "word"
    with pytest.raises(TypeError, match=r"'inner\.weight', got 'text'"):
        func.functional_call(module, {"inner.weight": "text"}, x)
    with pytest.raises(TypeError, match="'word' to be a Tensor in the module"):
        func.functional_call(module, {"word": x}, x)
    assert module.word == "word"


def test_modules_that_hold_one_another():
    module = Shifted()
    module.inner.outer = module
    given = {"inner.outer.inner.weight": wf.tensor([[2.0]]), "inner.bias": wf.zeros(1)}
    y = func.functional_call(module, given, wf.ones(1, 1), tie_weights=False)
    assert y.tolist() == [[2]] and module.inner.weight.item() != 2


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(1, 1)
        self.bias = self.inner.bias

    def forward(self, x):
        return self.inner(x) + self.bias


def test_one_tensor_has_one_replacement():
    module, x, new = Tied(), wf.zeros(1, 1), wf.tensor([2.0])
    both = {"bias": new, "inner.bias": new}
    assert func.functional_call(module, both, x).tolist() == [[4]]
    both["bias"] = wf.tensor([5.0])
    with pytest.raises(ValueError, match=r"'bias'.* are one tensor in the module"):
        func.functional_call(module, both, x)
    assert func.functional_call(module, both, x, tie_weights=False).tolist() == [[7]]
    assert module.bias is module.inner.bias


def test_the_old_name_warns():
    module, x = Tied(), wf.zeros(1, 1)
    with pytest.warns(FutureWarning, match=r"use func\.functional_call"):
        y = nn.utils.stateless.functional_call(module, {"bias": wf.tensor([2.0])}, x)
    assert y.tolist() == [[4]]
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="is missing"):
        nn.utils.stateless.functional_call(module, {}, (x,), {}, strict=True)
