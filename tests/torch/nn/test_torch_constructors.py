"""Old constructors, lists of tensors, and memory sharing, as in PyTorch."""

import numpy as np
import pytest

import weft as wf

torch = pytest.importorskip("torch")

MADE = [
    lambda m: m.Tensor([1, 2]),
    lambda m: m.Tensor((2, 3)),
    lambda m: m.Tensor(),
    lambda m: m.Tensor(device="cpu"),
    lambda m: m.Tensor(m.Size([2, 0])),
    lambda m: m.Tensor(size=(0, 2)),
    lambda m: m.Tensor(np.array([3])),
    lambda m: m.Tensor(np.array([1, 2], np.float16)),
    lambda m: m.Tensor([m.tensor(1), m.tensor(2.5)]),
    lambda m: m.Tensor(range(3)),
    lambda m: m.Tensor(m.ones(2).double()),
    lambda m: m.IntTensor([1.5, 2]),
    lambda m: m.BoolTensor([0, 2]),
    lambda m: m.ones(2).new(size=(0, 4)),
    lambda m: m.ones(2).new((3, 4)),
    lambda m: m.ones(2).new([np.int32(3), np.float64(4)]),
    lambda m: m.ones(2).new_full((2,), 3, device="cpu", dtype=m.int64),
    lambda m: m.ones(2).new_zeros(2, 2, device="cpu", layout=m.strided),
    lambda m: m.ones(2).new_tensor([2], device="cpu"),
    lambda m: m.full((2,), 3, layout=m.strided),
    lambda m: m.tensor([1, 2]).type(m.Tensor),
    lambda m: m.tensor([1, 2]).type("torch.DoubleTensor"),
    lambda m: m.tensor([m.tensor([1]), m.tensor([2])]),
    lambda m: m.tensor([m.tensor([[1]]), m.tensor(2)]),
    lambda m: m.tensor([1, m.tensor([2.5])]),
    lambda m: m.tensor([[m.tensor([1]), m.tensor([2])], [1, 2]]),
    lambda m: m.as_tensor([m.ones(1, requires_grad=True), m.ones(1)]),
    lambda m: m.tensor([np.ones(1), np.ones(1)]),
    lambda m: m.cat([m.ones(0), m.ones(0)], 1),
    lambda m: m.block_diag(),
    lambda m: m.tensor(((7, np.array(5)), (np.array(9), 5.0))),
    lambda m: m.tensor(((7, 5), (9, np.array(0.1)))),
    lambda m: m.tensor([1, m.tensor(0.1, dtype=m.float64)]),
    lambda m: m.tensor([1j, m.tensor(0.1, dtype=m.float64)]),
    lambda m: m.tensor([np.float32(0.1), 0.1]),
    lambda m: m.tensor([m.tensor(1, dtype=m.int8), 0.1]),
    lambda m: m.randint(0, 1, (3,), layout=m.strided, device="cpu"),
    lambda m: m.repeat_interleave(m.ones(2), m.tensor(2)),
    lambda m: m.bernoulli(m.ones(2), out=m.zeros(2, dtype=m.int32)),
    lambda m: m.all(m.ones(2, 2), 0, out=m.zeros(2, dtype=m.uint8)),
    lambda m: m.zeros(2).random_(0, 1),
    lambda m: m.lerp(m.full((4,), -3e4).bfloat16(), m.full((4,), -2e4).bfloat16(), 8.1),
    lambda m: m.lerp(m.zeros(2).bfloat16(), m.full((2,), 0.1).bfloat16(), 70000),
    lambda m: m.abs(m.ones(2) * 3j, out=m.zeros(2) * 1j),
    lambda m: m.histogramdd(m.ones(2, 3, 1), bins=[2], range=[0.0, 2.0])[0],
    lambda m: m.histogramdd(m.ones(2, 0, 1), bins=[2], range=[0.0, 2.0])[0],
    lambda m: m.nanquantile(m.ones(3, 2), m.ones(0), 0),
    lambda m: m.quantile(m.ones(3), m.ones(0)),
    lambda m: m.gradient(m.tensor([1j, 2, 5]), spacing=2j)[0],
    lambda m: m.tensor([True, False]).scatter(
        0, m.tensor([0, 1]), m.tensor([False, True]), reduce="multiply"
    ),
    lambda m: m.tensor([True, False]).scatter(
        0, m.tensor([0, 1]), m.tensor([False, True]), reduce="add"
    ),
    lambda m: m.tensor([True, True]).scatter_reduce(
        0, m.tensor([0, 0]), m.tensor([False, True]), "prod"
    ),
]


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch: lists of arrays are slow
@pytest.mark.parametrize("number", range(len(MADE)))
def test_construction(number):
    ours, theirs = MADE[number](wf), MADE[number](torch)
    assert f"torch.{ours.dtype}" == str(theirs.dtype)
    assert (tuple(ours.shape), ours.tolist()) == (tuple(theirs.shape), theirs.tolist())


TYPES = """bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64 complex64
complex128"""


@pytest.mark.parametrize("name", TYPES.split())
def test_names_of_types(name):
    ours, theirs = (m.from_numpy(np.zeros(2, name)) for m in (wf, torch))
    assert ours.type() == theirs.type()
    assert wf.ones(2).type(ours.type()).dtype == ours.dtype


REFUSED = [
    lambda m: m.Tensor(3.5),
    lambda m: m.Tensor([1, 2], [3]),
    lambda m: m.LongTensor(m.tensor([3.0])),
    lambda m: m.ones(2).new(m.tensor([1])),
    lambda m: m.ones(2.0),
    lambda m: m.zeros((3.0, m.tensor(4))),
    lambda m: m.Size(m.ones(3)),
    lambda m: m.tensor([[1, 2], 3]),
    lambda m: m.tensor([[1, 2], [[3], 4]]),
    lambda m: m.tensor([[np.ones(3), 2.0]]),
    lambda m: m.tensor([[1, 2], [3]]),
    lambda m: m.as_strided(m.ones(14), (2,), (-11,)),
    lambda m: m.ones(2).__dlpack__(stream=object()),
    lambda m: m.repeat_interleave(m.arange(4).reshape(2, 2)),
    lambda m: m.repeat_interleave(m.ones(4), m.arange(4).reshape(2, 2)),
    lambda m: m.ones(3).roll(shifts=(), dims=()),
    lambda m: m.ones(3, 3).roll((1,), (1, 0)),
    lambda m: m.meshgrid(m.tensor([1]), m.tensor([2.0])),
    lambda m: m.linspace(0, 1j, 5, dtype=m.float32),
    lambda m: m.logspace(0, 1j, 5, dtype=m.float32),
    lambda m: m.polar(m.tensor([1]), m.tensor([1])),
    lambda m: m.polar(m.ones(1), m.ones(1, dtype=m.float64)),
    lambda m: m.empty(2).uniform_(-3e38, 3e38),
    lambda m: m.zeros(3, dtype=m.int64, out=m.zeros(3)),
    lambda m: m.cumsum(m.ones(3), 0, dtype=m.float64, out=m.zeros(3)),
    lambda m: m.neg(m.ones(3), out=m.zeros(3, dtype=m.float64)),
    lambda m: m.all(m.ones(2, 2), 0, out=m.zeros(2)),
    lambda m: m.argmax(m.ones(3), out=m.zeros(())),
    lambda m: type("Foo", (m.FloatTensor,), {}),
    lambda m: m.zeros(2).as_subclass(list),
    lambda m: m.ones(2).map_(m.ones(3), max),
    lambda m: m.heaviside(m.ones(2), m.ones(2).double()),
    lambda m: m.isposinf(m.ones(2), out=m.zeros(2, dtype=m.uint8)),
    lambda m: m.heaviside(m.ones(2), m.ones(2), out=m.ones(2) * 1j),
    lambda m: m.take_along_dim(m.ones(3), m.tensor([0], dtype=m.int32), 0),
    lambda m: m.heaviside(m.ones(1) * 1j, m.ones(1) * 1j),
    lambda m: m.special.zeta(m.ones(2), m.ones(3)),
    lambda m: m.ones(2, 2).map_(m.ones(3, 2, 2), max),
    lambda m: (x := m.ones(2), x.numpy(), x.resize_(3)),
    lambda m: m.from_numpy(np.ones(2)).resize_(3),
    lambda m: m.max(m.ones(3), 0, out=(m.zeros(()), m.zeros((), dtype=m.int32))),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_errors(number):
    with pytest.raises((TypeError, ValueError, RuntimeError)) as theirs:
        REFUSED[number](torch)
    with pytest.raises(theirs.type):
        REFUSED[number](wf)


def test_seeds_of_more_than_64_bits_raise():
    for seed in (-(1 << 63) - 1, 1 << 64):
        with pytest.raises(RuntimeError, match="manual_seed: expected a number of 64 bits"):
            wf.manual_seed(seed)
    wf.manual_seed(-1)
    assert wf.initial_seed() == (1 << 64) - 1


def test_old_constructors_share_memory():
    for m in (torch, wf):
        array, x = np.zeros(2, np.float32), m.zeros(2)
        made, same = m.Tensor(array), m.Tensor(x)
        array[0] = 1
        same[1] = 2
        assert (made.tolist(), x.tolist()) == ([1, 0], [0, 2])


PARTS = [
    lambda x: x[1:],
    lambda x: x[0],
    lambda x: x[:, ::2],
    lambda x: x.t(),
    lambda x: x.t()[1:, 0],
    lambda x: x.view(-1)[2:5].view(3, 1),
    lambda x: x.diagonal(),
    lambda x: x.detach()[1],
    lambda x: x.unfold(1, 2, 1)[:, 0],
    lambda x: x.reshape(-1).as_strided((2, 2), (3, 1), 1),
]


@pytest.mark.parametrize("number", range(len(PARTS)))
@pytest.mark.parametrize("looked_at", [False, True])
def test_the_array_of_a_view_is_its_part_of_the_memory(number, looked_at):
    found = []
    for m in (torch, wf):
        x = m.arange(12.0).view(3, 4) * 1
        if looked_at:
            x.tolist()
        part = PARTS[number](x)
        array = part.numpy()
        array[(0,) * array.ndim] = 50.0
        x.mul_(2)
        found.append((x.tolist(), part.tolist(), array.tolist(), array.strides))
        assert m.from_dlpack(part).tolist() == part.tolist()
    assert found[0] == found[1]


def test_the_array_of_a_view_with_other_elements():
    x = wf.tensor([1 + 2j, 3 + 4j])
    wf.view_as_real(x).numpy()[0, 1] = 7
    x.imag.numpy()[1] = 9
    assert x.tolist() == [1 + 7j, 3 + 9j]
    y = wf.zeros(2)
    y.view(wf.int32).numpy()[0] = 0x3F800000
    assert y.tolist() == [1, 0]


def test_what_lies_apart_is_copied_where_one_axis_is_asked_for():
    for m in (torch, wf):
        x = m.zeros(4)
        x[::2].ravel()[0] = 1
        flat = x.ravel()
        flat[1] = 2
        assert x.tolist() == [0, 2, 0, 0] and x.flatten(0, 0) is x


WARNED = [
    lambda m: m.frombuffer(bytes(8), dtype=m.float32),
    lambda m: m.range(0, 3),
    lambda m: m.zeros(2).random_(0, 1 << 26),
]


@pytest.mark.parametrize("number", range(len(WARNED)))
def test_what_is_warned_of(number):
    torch.set_warn_always(True)  # also of what other tests met before
    for m in (torch, wf):
        with pytest.warns(UserWarning):
            WARNED[number](m)


def test_numbers_are_drawn_beside_the_stream():
    for m in (torch, wf):
        m.manual_seed(0)
        with m.random.fork_rng() if m is torch else wf.fork_rng():
            inside = m.rand(3)
        with wf.fork_rng(enabled=False):
            assert m.rand(3).tolist() == inside.tolist()
    assert wf.rand(3).tolist() != inside.tolist()


def test_the_memory_of_a_file(tmp_path):
    path = tmp_path / "file"
    for m in (torch, wf):
        x = m.from_file(str(path), shared=True, size=3, dtype=m.int32)
        x.copy_(m.tensor([1, 2, 3], dtype=m.int32))
        other = m.from_file(str(path), shared=True, size=3, dtype=m.int32)
        assert other.tolist() == [1, 2, 3] == x.tolist()
    assert np.fromfile(path, np.int32).tolist() == [1, 2, 3]
    copied = wf.from_file(path, size=3, dtype=wf.int32)
    assert copied.add_(1).tolist() == [2, 3, 4] and np.fromfile(path, np.int32).tolist() == [
        1,
        2,
        3,
    ]
    with pytest.raises(wf.errors.AliasError, match="from_file: expected 4 elements of int32"):
        wf.from_file(path, size=4, dtype=wf.int32)


def test_a_tensor_of_another_class():
    class Named(wf.Tensor):
        name = "it"

    x = wf.ones(2, requires_grad=True)
    named = (x * 2).as_subclass(Named)
    named.sum().backward()
    assert type(named) is Named and named.name == "it" and x.grad.tolist() == [2, 2]
    y = wf.zeros(2)
    y.as_subclass(Named)[0] = 5
    assert y.tolist() == [5, 0] and Named().shape == (0,)


def test_devices_have_numbers():
    for m in (torch, wf):
        named, numbered = m.device("cpu"), m.device("cpu:0")
        assert (named.index, numbered.index, m.device("cpu", 0)) == (None, 0, numbered)
        assert named != numbered and hash(named) != hash(numbered)
        assert (str(named), str(numbered)) == ("cpu", "cpu:0")
        assert repr(numbered) == "device(type='cpu', index=0)"
