"""Arguments that select nothing here: right ones are taken, wrong ones raise."""

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft.data.transforms import Normalize, RandomErasing

ON_CUDA = [
    lambda **o: wf.hann_window(4, **o), lambda **o: wf.hamming_window(4, **o),
    lambda **o: wf.blackman_window(4, **o), lambda **o: wf.bartlett_window(4, **o),
    lambda **o: wf.kaiser_window(4, **o), lambda **o: wf.fft.fftfreq(4, **o),
    lambda **o: wf.fft.rfftfreq(4, **o), lambda **o: wnp.fft.fftfreq(4, **o),
    lambda **o: wnp.fft.rfftfreq(4, **o),
    lambda **o: wf.nn.Transformer.generate_square_subsequent_mask(2, **o),
]  # fmt: skip


@pytest.mark.parametrize("call", ON_CUDA)
def test_devices_are_checked(call):
    assert call(device="cpu").shape == call().shape
    with pytest.raises(wf.errors.ConfigError, match="the only device here, got 'cuda'"):
        call(device="cuda")


REFUSED = [
    (lambda: wf.rand(2, layout=3), "layout: expected weft.strided, got 3"),
    (lambda: wf.randn(2, layout="sparse"), "layout: expected weft.strided"),
    (lambda: wf.randint(3, (2,), layout=1), "layout: expected weft.strided"),
    (lambda: wf.linalg.svd(wf.eye(2), driver="gesvd"), "svd: expected no driver"),
    (lambda: wf.linalg.svdvals(wf.eye(2), driver="gesvd"), "svdvals: expected no driver"),
    (
        lambda: wf.linalg.lu_factor_ex(wf.zeros(2, 2), check_errors=True),
        r"lu_factor_ex: expected factors that can be inverted, got U\[1,1\] of 0",
    ),
    (
        lambda: wf.repeat_interleave(wf.arange(3), 2, output_size=5),
        "expected output_size=6, got 5",
    ),
    (lambda: wnp.partition(wnp.asarray([3, 1]), 2), "partition: expected -2 <= kth < 2, got 2"),
    (lambda: wnp.nan_to_num([1.0], copy=False), "copy=False: expected an array of weft.numpy"),
    (lambda: Normalize([0], [1], inplace=True)(np.ones((1, 2, 2), "u1")), "an image of float32"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_values_without_a_meaning_raise(call, text):
    with pytest.raises(wf.errors.WeftError, match=text):
        call()


def test_what_is_accepted_works():
    assert wf.rand(2, layout=wf.strided).shape == (2,)
    assert wf.linalg.lu_factor_ex(wf.eye(2), check_errors=True).info.item() == 0
    twice = wf.repeat_interleave(wf.ones(2, 3), wf.tensor([1, 2]), 0, output_size=3)
    assert twice.shape == (3, 3)
    x = wnp.asarray([np.nan, 1.0])
    assert wnp.nan_to_num(x, copy=False) is x
    assert x.tolist() == [0, 1]
    assert wnp.nan_to_num(x * np.inf, nan=3.0).tolist()[0] == 3
    for image in (wf.ones(3, 8, 8), np.ones((3, 8, 8), np.float32)):
        assert Normalize([0.5], [0.25], inplace=True)(image) is image
        assert float(image[0, 0, 0]) == 2
        assert RandomErasing(1.0, scale=(0.2, 0.2), inplace=True)(image) is image
        assert {float(v) for v in np.unique(np.asarray(image))} == {0, 2}


def test_batches_of_workers_are_shared():
    (batch,) = wf.utils.data.DataLoader(wf.ones(2, 500), batch_size=2, num_workers=1)
    assert batch.is_shared()
    assert not (batch + 1).is_shared()
