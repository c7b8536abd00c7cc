"""Convolutions and their gradients: choose the kernels by shape."""

from __future__ import annotations

from weft.codegen.contraction.sink import Summing, sink_of
from weft.codegen.convolution.correlate import launch_correlation
from weft.codegen.convolution.depthwise import launch_depthwise
from weft.codegen.convolution.depthwise import suits as depthwise
from weft.codegen.convolution.geometry import (
    Correlation,
    backward_of,
    forward_of,
    shapes_of,
    window_of,
)
from weft.codegen.convolution.narrow import launch_narrow
from weft.codegen.convolution.narrow import suits as narrow
from weft.codegen.convolution.pack import launch_packing
from weft.codegen.convolution.plan import plan_of
from weft.codegen.convolution.weight import launch_weight_gradient
from weft.codegen.convolution.weight_depthwise import launch_depthwise_gradient
from weft.codegen.convolution.weight_depthwise import suits as depthwise_gradient
from weft.codegen.convolution.weight_plan import plan_of as plan_of_weight
from weft.codegen.convolution.weight_problem import weight_gradient_of
from weft.codegen.kernel import Argument, Launch
from weft.codegen.target import Target
from weft.codegen.winograd.nest import launch_winograd
from weft.codegen.winograd.plan import plan_of as minimal_plan
from weft.codegen.winograd.weight_gradient import (
    launch_weight_gradient as launch_minimal_weight_gradient,
)
from weft.codegen.winograd.weight_gradient import plan_of as minimal_weight_plan
from weft.ir.node import Node, Value
from weft.passes.group import Group


def conv(group: Group, target: Target) -> tuple[Launch, ...]:
    """Launches for a group whose first node is a `conv`; the rest is its epilogue."""
    node = group.nodes[0]
    return _correlate(_problem(node), group, node.data_inputs, target)


def conv_grad_input(group: Group, target: Target) -> tuple[Launch, ...]:
    """Launches for a group whose first node is a `conv_grad_input`; the rest is its epilogue."""
    node = group.nodes[0]
    return _correlate(_problem(node), group, node.data_inputs, target)


def error_growth(node: Node, target: Target) -> float:
    """How much rounding errors grow by the transforms that compute a node; 0 without any."""
    if node.op == "conv_grad_weight":
        x, g, w = shapes_of(node)
        window, dtype = window_of(node, w), node.outputs[0].dtype
        plan = minimal_weight_plan(forward_of(x, w, g, window, dtype), target)
    elif node.op in ("conv", "conv_grad_input"):
        plan = minimal_plan(_problem(node), target)
    else:
        return 0.0
    return plan.transform.growth if plan is not None else 0.0


def _problem(node: Node) -> Correlation:
    source, weights, result = shapes_of(node)
    window, dtype = window_of(node, weights), node.outputs[0].dtype
    if node.op == "conv":
        return forward_of(source, weights, result, window, dtype)
    return backward_of(result, weights, source, window, dtype)


def _correlate(
    problem: Correlation, group: Group, operands: tuple[Value, ...], target: Target
) -> tuple[Launch, ...]:
    if not problem.pixels * problem.groups * problem.columns:
        return ()
    sink = sink_of(group)
    launches = _launches(problem, operands, target, sink)
    return (*launches, *sink.after(target))


def _launches(
    problem: Correlation, operands: tuple[Value, ...], target: Target, sink: Summing
) -> tuple[Launch, ...]:
    source, weights = operands
    if depthwise(problem):
        return (launch_depthwise(problem, target, source, weights, sink),)
    if narrow(problem, target):
        return launch_narrow(problem, target, (source, weights), sink)
    minimal = minimal_plan(problem, target)
    if minimal is not None:
        return launch_winograd(problem, minimal, target, (source, weights), sink)
    plan = plan_of(problem, target)
    before: tuple[Launch, ...] = ()
    packed: Argument = weights
    if problem.packed_taps * problem.depth:
        pack, packed = launch_packing(problem, plan.tile, target, weights)
        before = (pack,)
    return (*before, launch_correlation(problem, plan, target, source, packed, sink))


def conv_grad_weight(group: Group, target: Target) -> tuple[Launch, ...]:
    """Launches for a group whose first node is a `conv_grad_weight`; the rest is its epilogue."""
    node = group.nodes[0]
    x, g, w = shapes_of(node)
    problem = weight_gradient_of(x, w, g, window_of(node, w), node.outputs[0].dtype)
    if not problem.rows * problem.width:
        return ()
    sink = sink_of(group)
    if depthwise_gradient(problem):
        return launch_depthwise_gradient(problem, target, node.data_inputs, sink)
    convolution = forward_of(x, w, g, window_of(node, w), problem.dtype)
    minimal = minimal_weight_plan(convolution, target)
    if minimal is not None:
        source, cotangent = node.data_inputs
        return launch_minimal_weight_gradient(minimal, (source, cotangent), sink)
    plan = plan_of_weight(problem, target)
    return launch_weight_gradient(problem, plan, target, node.data_inputs, sink)
