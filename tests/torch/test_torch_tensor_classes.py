"""Classes that programs derive from `Tensor`, and classes of others: `__torch_function__`."""
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as wf
from weft.eager.functions.override import disabled
from weft.ops.override import Disabled

CASES: dict[str, Callable[[Any, Any, Any], Any]] = {  # of a library, a tensor of the class, another
    "operator": lambda t, s, p: [s + 1, 1 - s, p * s, s @ p.T, -s, s == p],
    "function": lambda t, s, p: [t.add(p, s), t.relu(s), t.mean(s), t.where(p > 0, p, s)],
    "sequence": lambda t, s, p: [t.stack([p, s]), t.cat([s, s])],
    "several": lambda t, s, p: [*s.chunk(2), *s.max(1), *t.split(s, 1), *s],
    "layer": lambda t, s, p: [t.nn.functional.softmax(s, -1), t.nn.Linear(3, 2)(s)],
    "method": lambda t, s, p: [s.clone(), s.detach(), s.to(t.float64), s[0], s[0, 1], s.sum()],
    "attribute": lambda t, s, p: [s.T, s.data, s.shape, s.ndim, s.requires_grad, len(s)],
    "unchanged": lambda t, s, p: [
        t.nn.functional.dropout(s, 0.5, False), s.add_(1), s.as_subclass(t.Tensor), t.is_tensor(s)
    ],
    "value": lambda t, s, p: [s.tolist(), s.sum().item(), s.numpy().sum(), bool(s[0, 0])],
}  # fmt: skip


def classes(library: Any) -> dict[str, Any]:
    class Keeps(library.Tensor):
        pass

    class Plain(library.Tensor):
        """As torchvision's: few methods keep it."""

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            with Disabled() if library is wf else torch._C.DisableTorchFunctionSubclass():
                found = func(*args, **(kwargs or {}))
            if func in (library.Tensor.clone, library.Tensor.to, library.Tensor.detach):
                return found.as_subclass(cls)
            return found.as_subclass(library.Tensor) if isinstance(found, cls) else found

    class Off(library.Tensor):
        __torch_function__ = disabled if library is wf else torch._C._disabled_torch_function_impl

    return {"keeps": Keeps, "plain": Plain, "off": Off}


def told(x: Any) -> Any:
    if isinstance(x, list):
        return [told(y) for y in x]
    return type(x).__name__ if isinstance(x, wf.Tensor | torch.Tensor) else x


@pytest.mark.parametrize("case", CASES)
def test_results_have_the_class_that_pytorchs_have(case: str) -> None:
    for kind in ("keeps", "plain", "off"):
        found: list[Any] = []
        for library in (wf, torch):
            x = library.arange(6.0).reshape(2, 3)
            given = library, x.as_subclass(classes(library)[kind]), library.ones(2, 3)
            found.append(told([*CASES[case](*given)]))
        assert found[0] == found[1], kind


def test_a_class_sees_the_functions_that_a_program_calls() -> None:
    seen: list[str] = []

    class Seen(wf.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    x = wf.ones(2, 3).as_subclass(Seen)
    wf.add(x, 1)
    wf.nn.functional.cross_entropy(x, wf.tensor([0, 1]))
    wf.stack([wf.ones(2, 3), x])
    assert seen == ["add", "cross_entropy", "stack"]


def test_a_class_that_is_no_tensor_implements_functions() -> None:
    class Named:
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return (func.__name__, kwargs) if func is wf.mean else NotImplemented

    assert wf.mean(Named(), dim=0) == ("mean", {"dim": 0})
    with pytest.raises(TypeError, match="none of"):
        wf.mul(wf.ones(2), Named())


def test_gradients_flow_and_are_plain() -> None:
    x = wf.ones(3, requires_grad=True)
    y = (x.as_subclass(classes(wf)["keeps"]) * 2).sum()
    y.backward()
    assert type(y).__name__ == "Keeps" and type(x.grad) is wf.Tensor and x.grad.tolist() == [2] * 3
    assert repr(y).startswith("Keeps(6., grad_fn=")
