"""Packed sequences of different lengths against PyTorch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402

pytestmark = pytest.mark.usefixtures("interpreted")
theirs, ours = torch.nn.utils.rnn, wf.nn.utils.rnn
LENGTHS = [[3, 2, 1], [2, 4, 1, 4], [3, 3], [1]]


def sequences(lengths, *rest):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, *rest)).astype(np.float32) for n in lengths]


def packs(lengths, *rest, **options):
    given = sequences(lengths, *rest)
    return [
        u.pack_sequence([t.tensor(x) for x in given], enforce_sorted=False, **options)
        for u, t in ((theirs, torch), (ours, wf))
    ]


def same(a, b):
    assert (a is None) == (b is None)
    if a is not None:
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_and_padding(lengths, batch_first):
    packed = packs(lengths, 2)
    for a, b in zip(*packed, strict=True):
        same(a, b)
    padded = [
        u.pad_packed_sequence(p, batch_first, padding_value=7.0, total_length=6)
        for u, p in zip((theirs, ours), packed, strict=True)
    ]
    for a, b in zip(*padded, strict=True):
        same(a, b)
    again = [
        u.pack_padded_sequence(x, n, batch_first, enforce_sorted=False)
        for u, (x, n) in zip((theirs, ours), padded, strict=True)
    ]
    for a, b in zip(*again, strict=True):
        same(a, b)
    for a, b in zip(
        theirs.unpack_sequence(packed[0]), ours.unpack_sequence(packed[1]), strict=True
    ):
        same(a, b)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_layers_over_packed_sequences(kind, lengths, bidirectional, given):
    options = {"num_layers": 2, "bidirectional": bidirectional, "batch_first": given}
    layers = [getattr(t.nn, kind)(2, 3, **options) for t in (torch, wf)]
    layers[1].load_state_dict({k: wf.tensor(v.numpy()) for k, v in layers[0].state_dict().items()})
    start = np.random.default_rng(1).normal(size=(4 if bidirectional else 2, len(lengths), 3))
    outputs = []
    for t, layer, packed in zip((torch, wf), layers, packs(lengths, 2), strict=True):
        packed.data.requires_grad_()
        h = t.tensor(start.astype(np.float32))
        state = ((h, h * 2) if kind == "LSTM" else h) if given else None
        y, last = layer(packed, state)
        last = last if isinstance(last, tuple) else (last,)
        (y.data.square().sum() + sum(s.square().sum() for s in last)).backward()
        grads = [packed.data.grad, *[p.grad for p in layer.parameters()]]
        outputs.append([*y, *last, *grads])
    for a, b in zip(*outputs, strict=True):
        same(a, b)


@pytest.mark.parametrize(
    "call",
    [
        lambda u, t: u.pack_sequence([t.ones(1), t.ones(2)]),
        lambda u, t: u.pack_padded_sequence(t.ones(2, 2), [2, 0]),
        lambda u, t: u.pack_padded_sequence(t.ones(2, 2), [2]),
        lambda u, t: u.pack_padded_sequence(t.ones(2, 2), []),
        lambda u, t: t.nn.GRU(3, 4)(u.pack_sequence([t.ones(2, 5)])),
        lambda u, t: t.nn.GRU(3, 4)(u.pack_sequence([t.ones(2, 3)]), t.zeros(1, 2, 4)),
    ],
)
def test_errors(call):
    for u, t in ((theirs, torch), (ours, wf)):
        with pytest.raises((RuntimeError, ValueError)):
            call(u, t)


def test_conversions():
    packed = packs([2, 1])[1]
    assert packed.double().data.dtype is packed.to(wf.float64).data.dtype is wf.float64
    assert packed.half().data.dtype is wf.float16
    assert packed.int().long().data.dtype is wf.int64
    assert packed.cpu() is packed.pin_memory() is packed
    assert not (packed.is_cuda or packed.is_pinned())
    with pytest.raises(ValueError, match="lengths from 1 to 2"):
        ours.pack_padded_sequence(wf.ones(2, 2), [3, 1])
    with pytest.raises(ValueError, match="total_length"):
        ours.pad_packed_sequence(packed, total_length=1)
