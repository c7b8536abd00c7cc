"""Kernels that cover an axis whole, or nearly: values, shapes, and the same bits everywhere."""

import random

import numpy as np
import pytest

import weft as wf
from weft import ops
from weft.ir.graph import Graph
from weft.passes.pipeline import verify_types
from weft.passes.prune import prune
from weft.passes.step import Step
from weft.passes.whole_axes import whole_axes
from weft.transform.gradient import gradients
from weft.transform.interpreter import evaluate

ATTRS = ("strides", "padding", "dilation", "groups")


def drawn(seed, nearly=False):
    """Shapes and attributes with at least one axis that is covered whole, or nearly."""
    draw = random.Random(seed)
    rank = draw.choice((1, 2, 2, 2, 3))
    whole = [draw.random() < 0.5 for _ in range(rank)]
    whole[draw.randrange(rank)] = True
    image, taps, pads, strides, dilation = [], [], [], [], []
    for covered in whole:
        size = draw.randint(2, 9)
        image.append(size + (draw.randint(1, 3) if covered and nearly else 0))
        taps.append(size if covered else draw.randint(1, size))
        pads.append((0, 0) if covered else (draw.randint(0, 2), draw.randint(0, 2)))
        strides.append(draw.randint(1, 3))
        fits = covered or (taps[-1] - 1) * 2 + 1 > size
        dilation.append(1 if fits else draw.randint(1, 2))
    groups = draw.choice((1, 1, 2, 3))
    depth, filters = draw.choice((1, 2, 5)), draw.choice((1, 3, 20))
    x = (draw.randint(1, 4), *image, depth * groups)
    attrs = dict(zip(ATTRS, (tuple(strides), tuple(pads), tuple(dilation), groups), strict=True))
    return x, (*taps, depth, filters * groups), attrs


def step_of(x, w, attrs):
    """The convolution and its gradients, of the square of its result."""
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (x, w)]
    graph = Graph()
    with graph.as_default():
        feeds = [ops.placeholder(dtype="float32", shape=a.shape) for a in arrays]
        y = ops.conv(*feeds, **attrs)
        graph.outputs = (y, *gradients([ops.square(y)], feeds))
    return Step(graph, tuple(v.node.name for v in feeds), ()), arrays


def values(step, arrays):
    feeds = {step.graph.find(n).outputs[0]: a for n, a in zip(step.feeds, arrays, strict=True)}
    return evaluate(step.graph, step.graph.outputs, feeds)


@pytest.mark.parametrize("seed", range(24))
def test_values_stay_and_no_whole_axis_remains(seed):
    step, arrays = step_of(*drawn(seed))
    after = prune(whole_axes(step))
    verify_types(after.graph)
    found = [n for n in after.graph.nodes if n.op.startswith("conv")]
    assert len(found) == 3
    for expected, actual in zip(values(step, arrays), values(after, arrays), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    again = prune(whole_axes(after))
    assert [n.op for n in again.graph.nodes] == [n.op for n in after.graph.nodes]


@pytest.mark.parametrize("seed", range(24))
def test_gradients_of_few_outputs_are_sums_over_outputs(seed):
    x, w, attrs = drawn(seed, nearly=True)
    attrs["padding"] = ((1, 2), *attrs["padding"][1:]) if seed % 3 else attrs["padding"]
    step, arrays = step_of(x, w, attrs)
    after = prune(whole_axes(step))
    verify_types(after.graph)
    for expected, actual in zip(values(step, arrays), values(after, arrays), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_a_gradient_of_few_outputs_visits_few_zeros():
    step, _ = step_of((2, 20, 20, 3), (15, 15, 3, 4), {})
    (node,) = [n for n in whole_axes(step).graph.nodes if n.op == "conv_grad_input"]
    assert (node.attrs["shape"], node.attrs["strides"]) == ((2, 90, 90, 3), (15, 15))


@pytest.mark.parametrize(
    ("x", "w", "attrs"),
    [
        ((2, 6, 7, 3), (3, 4, 3, 4), {}),  # four outputs
        ((2, 6, 4, 3), (3, 4, 3, 4), {"padding": ((0, 0), (1, 0))}),  # two outputs
        ((2, 1, 1, 3), (1, 1, 3, 4), {}),  # nothing to fold
    ],
)
def test_other_axes_stay(x, w, attrs):
    step, _ = step_of(x, w, attrs)
    assert [n.op for n in whole_axes(step).graph.nodes] == [n.op for n in step.graph.nodes]


@pytest.mark.parametrize("seed", range(4))
def test_programs_and_the_library_give_the_bits_of_each_other_near_the_reference(seed):
    shape, weights, attrs = drawn(seed, nearly=seed % 2 == 1)
    step, arrays = step_of(shape, weights, attrs)
    x, w = (wf.tensor(a, requires_grad=True) for a in arrays)
    rank = len(shape) - 2
    order = (0, rank + 1, *range(1, rank + 1))
    back = (0, *range(2, rank + 2), 1)
    convolve = (wf.nn.functional.conv1d, wf.nn.functional.conv2d, wf.nn.functional.conv3d)[rank - 1]
    (*_, groups), pads = [attrs[k] for k in ATTRS], [p for p in reversed(attrs["padding"])]
    flat = [0, 0, *[n for pair in pads for n in pair]]
    del flat[:2]
    seen = []
    for _ in range(5):  # the library computes the first runs, a program the last
        x.grad = w.grad = None
        image = wf.nn.functional.pad(x.permute(order), flat)
        kernel = w.permute(rank + 1, rank, *range(rank))
        y = convolve(
            image, kernel, stride=attrs["strides"], dilation=attrs["dilation"], groups=groups
        ).permute(back)
        (y * y).sum().backward()
        seen.append([v.detach().numpy().tobytes() for v in (y, x.grad, w.grad)])
    assert all(one == seen[0] for one in seen)
    for expected, actual in zip(values(step, arrays), (y, x.grad, w.grad), strict=True):
        np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=2e-4, atol=2e-4)
