"""A random call, and its result in its front end."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
from tools.attack.hostile.surface import Target, drawn_target
from tools.attack.hostile.value import Array, Draw, Drawn, Front, just
from weft import config
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ops.declaration import Case
from weft.runtime.engine import Function, State
from weft.transform.interpreter import evaluate

Arguments = tuple[list[Drawn], dict[str, Drawn]]
OPTIONAL = 0.35  # fraction of the parameters with a default that are given
UNKNOWN = inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)


@dataclass(frozen=True)
class Call:
    """A call; for layers and functions that return functions, also the call of the result.

    Attributes:
        target: what is called.
        arguments: of the call.
        then: arguments of the call of the result; None if it is not called.
        inner: the function that a transformation transforms.
    """

    target: Target
    arguments: Arguments
    then: Arguments | None = None
    inner: Target | None = None

    def __str__(self) -> str:
        first = [] if self.inner is None else [self.inner.text]
        text = f"{self.target.text}({_shown(self.arguments, first)})"
        return text if self.then is None else f"{text}({_shown(self.then, [])})"

    def result(self, front: Front) -> tuple[Any, list[Any]]:
        """The result, and the arguments, which the call may have changed."""
        args, options = _made(self.arguments, front)
        called: Callable[..., Any] = self.target.called
        if self.inner is not None:
            args.insert(0, self.inner.called)
        result, seen = called(*args, **options), [*args, *options.values()]
        if self.target.kind == "optimizer":
            result.step()
        if self.then is not None:
            args, options = _made(self.then, front)
            result, seen = result(*args, **options), [*seen, *args, *options.values()]
        return result, seen


def _shown(arguments: Arguments, first: list[str]) -> str:
    args, options = arguments
    given = [f"{name}={value.text}" for name, value in options.items()]
    return ", ".join([*first, *[value.text for value in args], *given])


def _made(arguments: Arguments, front: Front) -> tuple[list[Any], dict[str, Any]]:
    args, options = arguments
    named = {name: value.make(front) for name, value in options.items()}
    return [value.make(front) for value in args], named


def drawn_call(draw: Draw) -> Call:
    """A random call."""
    target = drawn_target(draw.point())
    if target.kind == "transform":
        inner = drawn_target(draw.point(), lambda t: t.front == "eager" and t.kind == "function")
        own = drawn_arguments(draw, target.described, skip=1)
        return Call(target, own, drawn_arguments(draw, inner.described), inner)
    if target.kind == "op":
        return Call(target, _example(draw, target.described))
    if target.kind == "layer":
        draw.shape = _shape_for(draw, target.name)
        own = drawn_arguments(draw, target.described)
        return Call(target, own, _forward(draw, target))
    if target.kind == "optimizer":
        args, options = drawn_arguments(draw, target.described, skip=1)
        return Call(target, ([_parameters(draw), *args], options))
    if target.kind == "method":
        args, options = drawn_arguments(draw, target.described, skip=1)
        return Call(target, ([draw.tensor(), *args], options))
    return Call(target, drawn_arguments(draw, target.described))


def _forward(draw: Draw, target: Target) -> Arguments:
    layer: Any = target.described
    return drawn_arguments(draw, layer.forward, skip=1)


def _shape_for(draw: Draw, name: str) -> tuple[int, ...]:
    """A shape that a layer of this name accepts, if its width is the call's."""
    if name[-1] == "d" and name[-2].isdigit():
        return (2, draw.width, *[8] * int(name[-2]))
    return draw.pick(((2, draw.width), (3, 2, draw.width)))


def _example(draw: Draw, described: Callable[..., Any]) -> Arguments:
    """One of an operation's own examples, mostly with a hostile argument."""
    examples: list[Case] = list(described.cases())  # type: ignore[attr-defined]
    if not examples:
        return drawn_arguments(draw, described)
    example = draw.pick(examples)
    args = [_given(x) for x in example.inputs]
    options = {name: just(value) for name, value in example.attrs.items()}
    _spoil(draw, args, options)
    return args, options


def _given(array: Array) -> Drawn:
    text = f"<{array.dtype}{list(array.shape)}>"
    return Drawn(text, lambda front: front.tensor(array.copy(), "plain"))


def _parameters(draw: Draw) -> Drawn:
    """A parameter with a gradient, for an optimizer."""
    array = draw.array(draw.shape, "float32")

    def make(front: Front) -> Any:
        made = weft.nn.Parameter(front.tensor(array.copy(), "plain"))
        made.grad = front.tensor(array * 2, "plain")
        return [made]

    return Drawn(f"[<parameter{list(draw.shape)}>]", make)


def drawn_arguments(draw: Draw, described: Callable[..., Any], skip: int = 0) -> Arguments:
    """Arguments by parameter names; mostly one or two of them hostile."""
    args: list[Drawn] = []
    options: dict[str, Drawn] = {}
    for parameter in list(_parameters_of(described))[skip:]:
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += [draw.tensor() for _ in range(int(draw.random.integers(0, 3)))]
        elif parameter.kind is parameter.VAR_KEYWORD:
            continue
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            args.append(draw.named(parameter.name))
        elif draw.chance(OPTIONAL):
            options[parameter.name] = draw.named(parameter.name)
    _spoil(draw, args, options)
    return args, options


def _spoil(draw: Draw, args: list[Drawn], options: dict[str, Drawn]) -> None:
    """Replaces some arguments by hostile values."""
    for _ in range(draw.pick((0, 0, 1) if draw.fitting else (0, 1, 1, 2))):
        if args and draw.chance(0.6):
            args[int(draw.random.integers(len(args)))] = draw.hostile()
        elif options:
            options[draw.pick(list(options))] = draw.hostile()
    if draw.chance(0.03):
        options[draw.pick(("nonsense", "dim", "out"))] = just(0)


def _parameters_of(described: Callable[..., Any]) -> Sequence[inspect.Parameter]:
    try:
        return list(inspect.signature(described).parameters.values())
    except (TypeError, ValueError):
        return [UNKNOWN]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call: an error, or arrays."""

    error: Exception | None
    arrays: list[Array]


def outcome(call: Call, compiled: bool) -> Outcome:
    """The outcome of a call, with every value and gradient computed."""
    weft.set_default_dtype(weft.float32)
    weft.set_grad_enabled(True)
    weft.manual_seed(0)
    run = {"graph": _deferred, "node": _nodes}.get(call.target.front, _eager)
    with config.override(compile=compiled), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return Outcome(None, run(call, compiled))
        except Exception as error:
            return Outcome(error, [])


def _eager(call: Call, compiled: bool) -> list[Array]:
    make = weft.numpy.asarray if call.target.front == "array" else weft.from_numpy
    front = Front(lambda array, layout: _laid(make(array), layout), lambda n: getattr(weft, n))
    result, seen = call.result(front)
    tensors = list(leaves((result, seen), weft.Tensor))
    for y in leaves(result, weft.Tensor):
        if y.requires_grad and y.grad_fn is not None and y.is_floating_point():
            y.sum().backward()
            break
    tensors += [x.grad for x in tensors if x.is_leaf and x.grad is not None]
    found = [np.array(x.numpy(force=True)) for x in tensors]
    weft.synchronize()
    return found


def _laid(x: Any, layout: str) -> Any:
    """The same numbers, or some of them, in non-contiguous memory."""
    if layout == "transposed":
        return x.T if x.ndim == 2 else x
    if not x.ndim or layout == "plain":
        return x
    if layout == "strided":
        return x[::2]
    return x.flip(0) if layout == "flipped" and hasattr(x, "flip") else x[:1].expand(x.shape)


def leaves(tree: Any, kind: type) -> Iterator[Any]:
    """All objects of a kind in nested lists, tuples and dicts."""
    if isinstance(tree, kind):
        yield tree
    elif isinstance(tree, Mapping):
        yield from leaves(list(tree.values()), kind)
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from leaves(part, kind)


def _deferred(call: Call, compiled: bool) -> list[Array]:
    tf1 = weft.tf1
    with tf1.Graph().as_default(), tf1.Session() as session:
        front = Front(lambda array, _: tf1.constant(array), lambda n: getattr(tf1, n, tf1.int32))
        result, _ = call.result(front)
        session.run(tf1.global_variables_initializer())
        found = [session.run(x) for x in leaves(result, (tf1.Tensor, tf1.Operation))]  # type: ignore[arg-type]
    return [np.asarray(y) for y in found if y is not None]


def _nodes(call: Call, compiled: bool) -> list[Array]:
    graph, feeds = Graph(), dict[Value, Array]()

    def tensor(array: Array, _: str) -> Value:
        value = weft.ops.placeholder(dtype=as_dtype(array.dtype), shape=array.shape)
        feeds[value] = array
        return value

    with graph.as_default():
        result, _ = call.result(Front(tensor, as_dtype))
    values = list(leaves(result, Value))
    if not compiled:
        return [np.asarray(y) for y in evaluate(graph, values, feeds)]
    function = Function(graph, values, feeds=list(feeds))
    return [np.asarray(y) for y in function(list(feeds.values()), State())]
