"""Convolutions and their gradients: choose the kernels by shape."""

from __future__ import annotations

from weft.codegen.contraction.sink import sink_of
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
from weft.ir.node import Value
from weft.passes.group import Group


def conv(group: Group, target: Target) -> tuple[Launch, ...]:
    """Launches for a group whose first node is a `conv`; the rest is its epilogue."""
    node = group.nodes[0]
    x, w, y = shapes_of(node)
    problem = forward_of(x, w, y, window_of(node, w), node.outputs[0].dtype)
    return _correlate(problem, group, node.data_inputs, target)


def conv_grad_input(group: Group, target: Target) -> tuple[Launch, ...]:
    """Launches for a group whose first node is a `conv_grad_input`; the rest is its epilogue."""
    node = group.nodes[0]
    g, w, x = shapes_of(node)
    problem = backward_of(x, w, g, window_of(node, w), node.outputs[0].dtype)
    return _correlate(problem, group, node.data_inputs, target)


def _correlate(
    problem: Correlation, group: Group, operands: tuple[Value, ...], target: Target
) -> tuple[Launch, ...]:
    if not problem.pixels * problem.groups * problem.columns:
        return ()
    source, weights = operands
    if depthwise(problem):
        return (launch_depthwise(problem, target, source, weights, sink_of(group)),)
    if narrow(problem, target):
        return launch_narrow(problem, target, (source, weights), sink_of(group))
    plan = plan_of(problem, target)
    before: tuple[Launch, ...] = ()
    packed: Argument = weights
    if problem.packed_taps * problem.depth:
        pack, packed = launch_packing(problem, plan.tile, target, weights)
        before = (pack,)
    sink = sink_of(group)
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
    plan = plan_of_weight(problem, target)
    return launch_weight_gradient(problem, plan, target, node.data_inputs, sink)
