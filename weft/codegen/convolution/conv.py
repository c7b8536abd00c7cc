"""Convolutions and their gradients: choose the kernels by shape."""

from __future__ import annotations

from dataclasses import replace

from weft.codegen.contraction.sink import Streaming, sink_of
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
from weft.codegen.loop.prologue import Prologue, leading_to
from weft.codegen.loop.schedule import loops
from weft.codegen.target import Target
from weft.codegen.winograd.nest import launch_winograd
from weft.codegen.winograd.plan import plan_of as minimal_plan
from weft.codegen.winograd.weight_gradient import (
    launch_weight_gradient as launch_minimal_weight_gradient,
)
from weft.codegen.winograd.weight_gradient import plan_of as minimal_weight_plan
from weft.host.memory import LINE
from weft.ir.dtype import float32
from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.ops.convolution import convolution
from weft.ops.declaration import op_of
from weft.passes.group import Group
from weft.passes.launch import Argument, Launch, Scratch


def conv(group: Group, target: Target) -> tuple[Launch, ...]:
    """Launches for a group whose first node is a `conv`; the rest is its epilogue."""
    node = group.nodes[0]
    return _correlate(_problem(node), group, target)


def conv_grad_input(group: Group, target: Target) -> tuple[Launch, ...]:
    """Launches for a group whose first node is a `conv_grad_input`; the rest is its epilogue."""
    node = group.nodes[0]
    return _correlate(_problem(node), group, target)


def error_growth(node: Node, target: Target) -> float:
    """How much the transforms that compute a node amplify rounding errors; 0 without any."""
    if op_of(node) is convolution.conv_grad_weight:
        x, g, w = shapes_of(node)
        window, dtype = window_of(node, w), node.outputs[0].dtype
        plan = minimal_weight_plan(forward_of(x, w, g, window, dtype), target)
    elif op_of(node) in (convolution.conv, convolution.conv_grad_input):
        problem = _problem(node)
        plan = minimal_plan(problem, target)
    else:
        return 0.0
    return plan.transform.growth if plan is not None else 0.0


def _problem(node: Node) -> Correlation:
    source, weights, result = shapes_of(node)
    window, dtype = window_of(node, weights), node.outputs[0].dtype
    if op_of(node) is convolution.conv:
        return forward_of(source, weights, result, window, dtype)
    return backward_of(result, weights, source, window, dtype)


def _correlate(problem: Correlation, group: Group, target: Target) -> tuple[Launch, ...]:
    if not problem.pixels * problem.groups * problem.columns:
        return ()
    sink = sink_of(group)
    source, weights = group.nodes[0].data_inputs
    if weights.node in group.before:  # the weights are transposed
        problem = replace(problem, turned=not problem.turned)
        (weights,) = weights.node.inputs
    few = narrow(problem, target)
    minimal = None if few else minimal_plan(problem, target, weights in group.lasting)
    reads = Prologue(group, source)
    before: tuple[Launch, ...] = ()
    if reads.steps and (few or minimal):
        before, reads = _stored(group, source, target)
    if minimal is None and not few:
        sink.past_caches(_past_caches(problem, target))
    if minimal is not None:
        operands = reads.array, weights
        launches = launch_winograd(problem, minimal, target, operands, sink)
    else:
        launches = _launches(problem, (reads, weights), target, sink)
    return (*before, *launches)


def _past_caches(problem: Correlation, target: Target) -> int:
    """Bytes from which results are stored non-temporally, unless groups begin within a line."""
    if not target.past_caches:
        return 0
    whole = depthwise(problem) or not problem.columns * float32.size % LINE
    return target.past_caches if whole else 0


def _stored(group: Group, operand: Value, target: Target) -> tuple[tuple[Launch, ...], Prologue]:
    """A launch that computes an operand, for kernels without a prologue."""
    steps = leading_to(operand, group.before)
    inputs = dict.fromkeys(v for n in steps for v in n.inputs if v.node not in steps)
    launches = loops(Group(tuple(steps), tuple(inputs), (operand,)), target)
    scratch = Scratch(size(known(operand.shape)) * operand.dtype.size)
    return (
        tuple(
            [
                replace(x, args=tuple([scratch if a is operand else a for a in x.args]))
                for x in launches
            ]
        ),
        Prologue(group, operand, scratch),
    )


def _launches(
    problem: Correlation, operands: tuple[Prologue, Value], target: Target, sink: Streaming
) -> tuple[Launch, ...]:
    source, weights = operands
    if depthwise(problem):
        return (launch_depthwise(problem, target, source, weights, sink),)
    if narrow(problem, target):
        return launch_narrow(problem, target, source, weights, sink)
    plan = plan_of(problem, target, source.steps)
    before: tuple[Launch, ...] = ()
    packed: Argument = weights
    if problem.packed_taps * problem.depth:
        pack, packed = launch_packing(problem, plan.tile, weights)
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
    source, cotangent = (Prologue(group, v) for v in node.data_inputs)
    if depthwise_gradient(problem):
        return launch_depthwise_gradient(problem, target, (source, cotangent), sink)
    convolution = forward_of(x, w, g, window_of(node, w), problem.dtype)
    minimal = minimal_weight_plan(convolution, target)
    before: tuple[Launch, ...] = ()
    if minimal is not None:
        if source.steps:
            before, source = _stored(group, node.data_inputs[0], target)
        operands = source.array, cotangent.array
        return (*before, *launch_minimal_weight_gradient(minimal, operands, sink))
    plan = plan_of_weight(problem, target)
    if source.steps and not plan.split:
        before, source = _stored(group, node.data_inputs[0], target)
    found = launch_weight_gradient(problem, plan, target, (source, cotangent), sink)
    return (*before, *found)
