"""Integer and complex convolutions beside PyTorch's."""

import numpy as np
import pytest

import weft as wf
from weft import nn

torch = pytest.importorskip("torch")


def drawn(rng, complex_numbers, *shape):
    x = rng.integers(-9, 9, shape)
    return x + 1j * rng.integers(-9, 9, shape) if complex_numbers else x


def arguments(rng, spatial, transposed, groups, complex_numbers):
    ins, outs = groups * int(rng.integers(1, 3)), groups * int(rng.integers(1, 3))
    window = rng.integers(1, 4, spatial).tolist()
    sizes = (ins, outs // groups) if transposed else (outs, ins // groups)
    image = rng.integers(5, 8, spatial).tolist()
    shapes = (2, ins, *image), (*sizes, *window), (outs,)
    return [drawn(rng, complex_numbers, *shape) for shape in shapes]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "complex64", "complex128"])
def test_a_convolution(dtype, transposed, spatial, seed):
    rng = np.random.default_rng(seed)
    groups = 1 + seed % 2
    given = arguments(rng, spatial, transposed, groups, dtype.startswith("complex"))
    strides, dilation = rng.integers(1, 4, spatial).tolist(), rng.integers(1, 3, spatial).tolist()
    padding = rng.integers(0, 2, spatial).tolist()
    if not transposed and dtype == "int64":
        dilation = [1] * spatial  # PyTorch has no others for integers
    more = [int(rng.integers(max(s, d))) for s, d in zip(strides, dilation, strict=True)]
    found = []
    for lib in (torch, wf):
        x, w, b = (lib.tensor(v).to(getattr(lib, dtype)) for v in given)
        if dtype != "int64":
            x, w, b = (v.requires_grad_() for v in (x, w, b))
        f = lib.nn.functional
        if transposed:
            run = getattr(f, f"conv_transpose{spatial}d")
            y = run(x, w, b, strides, padding, more, groups, dilation)
        else:
            y = getattr(f, f"conv{spatial}d")(x, w, b, strides, padding, dilation, groups)
        found.append([y.detach().numpy()])
        if dtype != "int64":
            (lib.real(y) ** 2 + 3 * lib.imag(y)).sum().backward()
            found[-1] += [abs(v.grad.numpy()) for v in (x, w, b)]
    for expected, actual in zip(*found, strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
def test_small_integers_wrap_around(dtype):
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 100, (2, 3, 7, 6)), rng.integers(0, 100, (4, 3, 2, 3))
    one, two = [
        lib.nn.functional.conv2d(
            *(lib.tensor(v).to(getattr(lib, dtype)) for v in (x, w)), padding=1
        ).numpy()
        for lib in (torch, wf)
    ]
    assert one.dtype == two.dtype
    np.testing.assert_array_equal(one, two)


def test_large_integers_are_exact():
    x = wf.tensor([[[2**53, 1, 2**60 + 1]]])
    assert nn.functional.conv1d(x, wf.tensor([[[1, 1]]])).tolist() == [[[2**53 + 1, 2**60 + 2]]]
    assert nn.functional.conv_transpose1d(x, wf.tensor([[[3]]])).tolist() == [
        [[3 * 2**53, 3, 3 * (2**60 + 1)]]
    ]


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_a_layer_of_complex_numbers(mode):
    ours = nn.Conv2d(2, 3, 3, padding="same", padding_mode=mode, dtype=wf.complex64)
    theirs = torch.nn.Conv2d(2, 3, 3, padding="same", padding_mode=mode, dtype=torch.complex64)
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    x = drawn(np.random.default_rng(0), True, 2, 2, 5, 6).astype(np.complex64)
    expected = theirs(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(ours(wf.tensor(x)).detach().numpy(), expected, rtol=1e-3, atol=1e-4)
