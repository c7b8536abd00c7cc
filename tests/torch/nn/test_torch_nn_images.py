"""Layers on images and other grids against PyTorch's, over random sizes and options."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

from nn_case import Cases, Draw, check  # noqa: E402

import weft as wf  # noqa: E402

CASES = Cases()


# Images


def image(d, spatial, channels, low=4, high=9):
    lead_dims = (d.size(1, 3), channels) if d.flag() else (channels,)
    return d.normal(*lead_dims, *[d.size(low, high) for _ in range(spatial)])


def per_axis(d, spatial, low, high):
    return d.pick(d.size(low, high), tuple(d.size(low, high) for _ in range(spatial)))


def convolution(spatial):
    def found(d):
        groups, i, o = d.pick(1, 1, 2, 3), d.size(1, 3), d.size(1, 3)
        i, o = i * groups, o * groups
        if d.flag():
            groups, o = i, 2 * i  # depthwise
        options = {
            "kernel_size": per_axis(d, spatial, 1, 3), "stride": per_axis(d, spatial, 1, 2),
            "padding": per_axis(d, spatial, 0, 2), "dilation": per_axis(d, spatial, 1, 2),
            "groups": groups, "bias": d.flag(),
        }  # fmt: skip
        if d.flag():
            options |= {"padding": d.pick("same", "valid"), "stride": 1}
        options["padding_mode"] = d.pick("zeros", "zeros", "reflect", "replicate", "circular")
        if options["padding_mode"] == "replicate" and d.flag():
            options["padding_mode"] = "zeros"
        make = lambda nn: getattr(nn, f"Conv{spatial}d")(i, o, **options)  # noqa: E731
        return make, [image(d, spatial, i, 5, 8)]

    CASES[f"conv{spatial}d"] = found


def transposed_convolution(spatial):
    def found(d):
        groups = d.pick(1, 1, 2)
        i, o = d.size(1, 3) * groups, d.size(1, 3) * groups
        stride = d.size(1, 3)
        options = {
            "kernel_size": per_axis(d, spatial, 2, 3), "stride": stride,
            "padding": per_axis(d, spatial, 0, 1), "dilation": d.size(1, 2), "groups": groups,
            "output_padding": d.size(0, stride - 1), "bias": d.flag(),
        }  # fmt: skip
        make = lambda nn: getattr(nn, f"ConvTranspose{spatial}d")(i, o, **options)  # noqa: E731
        return make, [image(d, spatial, i, 3, 5)]

    CASES[f"conv_transpose{spatial}d"] = found


def pooling(spatial):
    def maximum(d):
        window = d.size(2, 3)
        options = {
            "stride": d.pick(None, 1, 2), "padding": d.size(0, 1), "dilation": d.size(1, 2),
            "return_indices": d.flag(), "ceil_mode": d.flag(),
        }  # fmt: skip
        make = lambda nn: getattr(nn, f"MaxPool{spatial}d")(window, **options)  # noqa: E731
        return make, [image(d, spatial, 2, 6, 9)]

    def average(d):
        window = d.size(2, 3)
        options = {
            "stride": d.pick(None, 1, 2), "padding": d.size(0, 1), "ceil_mode": d.flag(),
            "count_include_pad": d.flag(),
        }  # fmt: skip
        if spatial > 1 and d.flag():
            options["divisor_override"] = 3
        make = lambda nn: getattr(nn, f"AvgPool{spatial}d")(window, **options)  # noqa: E731
        return make, [image(d, spatial, 2)]

    def norm(d):
        window, p, stride, ceil = d.size(2, 3), d.pick(1.0, 2.0, 3.0), d.pick(None, 2), d.flag()
        x = np.abs(image(d, spatial, 2)) + 0.1
        make = lambda nn: getattr(nn, f"LPPool{spatial}d")(p, window, stride, ceil)  # noqa: E731
        return make, [x]

    def adaptive_mean(d):
        size = d.pick(1, tuple(d.size(1, 4) for _ in range(spatial)))
        make = lambda nn: getattr(nn, f"AdaptiveAvgPool{spatial}d")(size)  # noqa: E731
        return make, [image(d, spatial, 2)]

    def adaptive_max(d):
        size, indices = d.pick(1, tuple(d.size(1, 4) for _ in range(spatial))), d.flag()
        make = lambda nn: getattr(nn, f"AdaptiveMaxPool{spatial}d")(size, indices)  # noqa: E731
        return make, [image(d, spatial, 2)]

    def unpool(d):
        window, x = 2, d.normal(2, 3, *[2 * d.size(1, 3) for _ in range(spatial)])
        pool = getattr(torch.nn.functional, f"max_pool{spatial}d")
        y, at = pool(torch.from_numpy(x), window, return_indices=True)
        return lambda nn: getattr(nn, f"MaxUnpool{spatial}d")(window), [y.numpy(), at.numpy()]

    CASES[f"max_pool{spatial}d"] = maximum
    CASES[f"avg_pool{spatial}d"] = average
    CASES[f"lp_pool{spatial}d"] = norm
    CASES[f"adaptive_avg_pool{spatial}d"] = adaptive_mean
    CASES[f"adaptive_max_pool{spatial}d"] = adaptive_max
    CASES[f"max_unpool{spatial}d"] = unpool


for _spatial in (1, 2, 3):
    convolution(_spatial)
    transposed_convolution(_spatial)
    pooling(_spatial)


def pads(name, spatial, most):
    def found(d):
        size = d.pick(d.size(0, most), tuple(d.size(0, most) for _ in range(2 * spatial)))
        extra = (2.5,) if name == "ConstantPad" else ()
        make = lambda nn: getattr(nn, f"{name}{spatial}d")(size, *extra)  # noqa: E731
        return make, [image(d, spatial, 2)]

    CASES[f"{name}{spatial}d"] = found


for _name in ("ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"):
    for _spatial in (1, 2, 3):
        pads(_name, _spatial, 3)


@CASES.add
def negative_pad(d):
    x = d.normal(2, 6, 7)
    sizes = tuple(int(n) for n in d.rng.integers(-2, 3, 4))
    return lambda nn: lambda x: nn.functional.pad(x, sizes, value=1.5), [x]


@CASES.add
def upsample(d):
    mode, spatial = d.pick(
        ("nearest", 1), ("nearest", 2), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2),
        ("bicubic", 2), ("trilinear", 3), ("area", 2),
    )  # fmt: skip
    options = {"mode": mode}
    if "linear" in mode or mode == "bicubic":
        options["align_corners"] = d.flag()
    if d.flag() and mode != "area":
        options["scale_factor"] = d.pick(2, 1.5)
    else:
        options["size"] = tuple(d.size(2, 9) for _ in range(spatial))
    return lambda nn: nn.Upsample(**options), [d.normal(2, 3, *[d.size(3, 6)] * spatial)]


@CASES.add
def pixel_shuffle(d):
    r, c = d.size(1, 3), d.size(1, 3)
    lead_dims = d.pick((), (2,), (2, 3))
    return lambda nn: nn.PixelShuffle(r), [d.normal(*lead_dims, c * r * r, d.size(), d.size())]


@CASES.add
def pixel_unshuffle(d):
    r, c = d.size(1, 3), d.size(1, 3)
    x = d.normal(*d.pick((), (2,)), c, r * d.size(), r * d.size())
    return lambda nn: nn.PixelUnshuffle(r), [x]


@CASES.add
def channel_shuffle(d):
    groups = d.size(1, 3)
    return lambda nn: nn.ChannelShuffle(groups), [d.normal(2, groups * d.size(), 3, 4)]


@CASES.add
def unfold(d):
    options = {"dilation": d.size(1, 2), "padding": d.size(0, 2), "stride": d.size(1, 2)}
    kernel = (d.size(1, 3), d.size(1, 3))
    return lambda nn: nn.Unfold(kernel, **options), [d.normal(2, 3, d.size(5, 8), d.size(5, 8))]


@CASES.add
def fold(d):
    options = {"dilation": d.size(1, 2), "padding": d.size(0, 2), "stride": d.size(1, 2)}
    kernel, size = (d.size(1, 3), d.size(1, 3)), (d.size(5, 8), d.size(5, 8))
    x = torch.nn.functional.unfold(torch.from_numpy(d.normal(2, 2, *size)), kernel, **options)
    return lambda nn: nn.Fold(size, kernel, **options), [x.numpy()]


@pytest.mark.filterwarnings("ignore:Using padding='same'")  # PyTorch's own, once a process
@pytest.mark.parametrize("name", CASES)
@at_most(3)
@given(seed=st.integers(0, 10**6))
def test_image_layer(name, seed):
    check(*CASES[name](Draw(seed)))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("to", [{"size": (31, 8)}, {"size": (16, 40)}, {"scale_factor": 0.37}])
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("smooth", [False, True])
def test_images_of_bytes_are_equal(mode, to, corners, smooth):
    options = {"mode": mode, "align_corners": corners, "antialias": smooth, **to}
    x = np.random.default_rng(0).integers(0, 256, (2, 3, 16, 16)).astype(np.uint8)
    expected = torch.nn.functional.interpolate(torch.tensor(x), **options)
    found = wf.nn.functional.interpolate(wf.tensor(x), **options)
    assert found.dtype == wf.uint8
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("to", [{"size": (3, 9)}, {"size": (20, 2)}, {"scale_factor": 0.37}])
@pytest.mark.parametrize("corners", [False, True])
def test_antialiased_images(mode, to, corners):
    options = {"mode": mode, "align_corners": corners, "antialias": True, **to}
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 11)).astype(np.float32)
    theirs, ours = torch.tensor(x, requires_grad=True), wf.tensor(x, requires_grad=True)
    expected = torch.nn.functional.interpolate(theirs, **options)
    found = wf.nn.functional.interpolate(ours, **options)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=5e-6)
    expected.square().sum().backward()
    found.square().sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-5)
