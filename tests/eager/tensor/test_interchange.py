"""Tensors in other libraries, in copies, in other processes; and reused memory."""

import copy
import gc
import multiprocessing
import weakref

import ml_dtypes
import numpy as np
import pytest

import weft as wf
from weft import errors
from weft.eager.record.memory import memory_pool
from weft.runtime.memory import recycled


def address(array):
    return array.__array_interface__["data"][0]


# NumPy


def test_numpy_sees_the_memory():
    x = wf.arange(6.0).reshape(2, 3) * 1
    a = np.asarray(x)
    assert address(a) == address(x.numpy()) == address(np.asarray(x))
    x.mul_(2)
    x.tolist()
    assert a.tolist() == [[0, 2, 4], [6, 8, 10]]
    a[0, 0] = 7
    assert x[0, 0].item() == 7


def test_numpy_sees_the_memory_behind_a_detached_tensor():
    w = wf.ones(3, requires_grad=True)  # not computed yet
    w.detach().numpy()[0] = 4
    np.asarray(w.detach().detach())[1] = 5
    assert w.tolist() == [4, 5, 1]
    assert (w * 2).tolist() == [8, 10, 2]


def test_numpy_copies_on_request():
    x = wf.ones(3)
    assert np.asarray(x, np.float64).dtype == np.float64
    assert address(np.array(x, copy=True)) != address(x.numpy())
    with pytest.raises(ValueError, match="copy"):
        np.array(x, np.float64, copy=False)


def test_arrays_share_their_memory_with_tensors():
    a = np.zeros(3, np.float32)
    x = wf.from_numpy(a)
    x.add_(1)
    x.tolist()
    assert a.tolist() == [1, 1, 1]
    b = wf.as_tensor(a)
    a[0] = 5
    assert b.tolist() == [5, 1, 1] and wf.tensor(a).add_(1) is not None and a[0] == 5


def test_read_only_arrays_stay_as_they_are():
    a = np.zeros(3, np.float32)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="from_numpy: the memory is read-only"):
        x = wf.from_numpy(a)
    x.add_(1)
    assert x.tolist() == [1, 1, 1] and a.tolist() == [0, 0, 0]


@pytest.mark.parametrize("part", [lambda x: x[1:], lambda x: x.view(3, 1)[1:], lambda x: x[1:][:1]])
def test_views_show_what_others_write(part):
    a = np.zeros(3, np.float32)
    x = wf.from_numpy(a)
    v = part(x)
    before = v + 1
    assert v.sum().item() == 0 and before.sum().item() > 0
    a[1] = 9
    assert v.sum().item() == 9 and v.tolist() == part(x).tolist()
    y = wf.zeros(3)
    w = part(y)
    w.numpy()[...] = 4
    assert w.mean().item() == 4 and y[1].item() == 4
    w += 1
    assert y[1].item() == 5 and w.numpy().max() == 5


def test_numpy_leaves_operators_to_the_tensor():
    x = wf.ones(2, requires_grad=True)
    for y in (np.ones(2, np.float32) + x, np.float32(2) * x, np.ones(2, np.float32) - x):
        assert isinstance(y, wf.Tensor) and y.requires_grad
    assert isinstance(np.sin(wf.ones(2)), wf.Tensor)


def test_the_namespace_is_that_of_the_standard():
    assert wf.ones(1).__array_namespace__() is wf.numpy


# DLPack

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_both_ways_without_a_copy(dtype):
    x = wf.ones(2, 3, dtype=dtype)
    a = np.from_dlpack(x)
    assert address(a) == address(x.numpy()) and a.dtype == dtype and x.__dlpack_device__() == (1, 0)
    y = wf.from_dlpack(a)
    assert address(y.numpy()) == address(a) and y.tolist() == x.tolist()


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_dlpack_with_bfloat16(version):
    x = wf.tensor([1.0, -2.5], dtype=wf.bfloat16)

    class Other:
        """A library that knows bfloat16."""

        def __dlpack_device__(self):
            return x.__dlpack_device__()

        def __dlpack__(self, **options):
            return x.__dlpack__(max_version=version)

    y = wf.from_dlpack(Other())
    assert y.dtype is wf.bfloat16 and y.tolist() == [1.0, -2.5]
    assert address(y.numpy()) == address(x.numpy())


def test_dlpack_of_a_library_without_versions():
    class Old:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, stream=None):
            return np.arange(3).__dlpack__()

    assert wf.from_dlpack(Old()).tolist() == [0, 1, 2]


def test_memory_lives_as_long_as_its_views():
    a = np.from_dlpack(wf.arange(1000.0) + 1)
    y = wf.from_dlpack(np.arange(1000.0))
    gc.collect()
    assert a[-1] == 1000 and y[-1].item() == 999


# Copies


def test_deep_copies_are_leaves_of_their_own():
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    shared = [x, {"again": x}]
    y, other = copy.deepcopy(shared)
    assert y is other["again"] and y is not x and y.is_leaf and y.requires_grad
    with wf.no_grad():
        y.add_(1)
        y.grad.zero_()
    assert (x.tolist(), x.grad.tolist(), y.tolist()) == ([1.0, 2.0], [2.0, 4.0], [2.0, 3.0])


def test_copies_share_memory():
    x = wf.zeros(2)
    y = copy.copy(x)
    y.add_(1)
    assert y is not x and x.tolist() == [1.0, 1.0]
    assert copy.copy(wf.ones(1, requires_grad=True)).requires_grad


def test_a_tensor_takes_attributes_and_copies_keep_them():
    x = wf.ones(2)
    x.group, x.parts = "slow", [1]
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert (shallow.group, deep.group, (x * 1).__dict__) == ("slow", "slow", {})
    assert shallow.parts is x.parts and deep.parts == [1] and deep.parts is not x.parts
    shallow.group = "fast"
    assert x.group == "slow"
    deep.itself, gone = deep, weakref.ref(deep)
    del deep
    gc.collect()
    assert gone() is None


def test_weak_references_and_hashes():
    x = wf.ones(2)
    seen = weakref.ref(x)
    assert seen() is x and len({x, x, wf.ones(2)}) == 2
    del x
    assert seen() is None


# Other processes


def double(x):
    return x * 2 if not x.requires_grad else (x * 2).detach()


def answer(questions, answers):
    answers.put(double(questions.get(timeout=60)))


@pytest.mark.slow
def test_tensors_pass_through_queues_and_pools():
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        given = [wf.ones(2), wf.tensor([1.0, 2.0], dtype=wf.bfloat16), wf.tensor([True]).long()]
        found = pool.map(double, [*given, wf.ones(2, requires_grad=True)])
    assert [y.tolist() for y in found] == [[2.0, 2.0], [2.0, 4.0], [2], [2.0, 2.0]]
    assert found[1].dtype is wf.bfloat16
    questions, answers = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(questions, answers))
    process.start()
    questions.put(wf.arange(3))
    assert answers.get(timeout=60).tolist() == [0, 2, 4]
    process.join()


# Memory


def test_memory_is_used_again_after_the_last_reference():
    wf.empty_cache()
    size = (1000, 1000)

    def fresh():
        return address((wf.ones(size) * 3).numpy())

    for _ in range(3):  # interpreted at first, in NumPy's memory
        first = fresh()
    assert [fresh() for _ in range(5)] == [first] * 5
    held = (wf.ones(size) * 3).numpy()[500]  # a view of an array keeps the memory, too
    assert fresh() != address(held) - 500 * 1000 * 4
    assert (held == 3).all()
    wf.empty_cache()


def test_results_that_live_have_memory_of_their_own():
    x = wf.arange(10_000.0)
    found = [x * float(i) for i in range(1, 6)]
    for y in found:
        y.tolist()
    assert len({address(y.numpy()) for y in found}) == 5
    assert [y[1].item() for y in found] == [1.0, 2.0, 3.0, 4.0, 5.0]
    parts = [y.numpy()[10:20] for y in found]
    del found, y
    assert [(x * 7).numpy()[10] for _ in range(3)] == [70.0] * 3
    assert [part[0] for part in parts] == [10.0, 20.0, 30.0, 40.0, 50.0]


def test_the_pool_keeps_no_more_than_it_may(monkeypatch):
    wf.empty_cache()
    monkeypatch.setattr(recycled, "MOST_KEPT", 100_000)
    arrays = [memory_pool.empty((10_000,), np.dtype(np.float32)) for _ in range(4)]
    assert all(address(a) % memory_pool.ALIGNMENT == 0 for a in arrays)
    del arrays
    assert recycled.POOL.kept == 80_000
    memory_pool.empty((20_000,), np.dtype(np.float32))  # the next run wants what came back last
    assert recycled.POOL.kept == 80_000
    assert list(recycled.POOL.free) == [80_000]
    wf.empty_cache()
    assert recycled.POOL.kept == 0


def test_a_large_free_block_serves_for_less(monkeypatch):
    wf.empty_cache()
    monkeypatch.setattr(recycled, "LARGE", 100_000)
    for size in (190_000, 400_000):
        recycled.empty((size,), np.dtype(np.uint8))
    less = recycled.empty((120_000,), np.dtype(np.uint8))
    assert recycled.POOL.kept == 400_000
    less[:] = 1
    del less
    assert recycled.POOL.kept == 590_000
    recycled.empty((90_000,), np.dtype(np.uint8))
    assert recycled.POOL.kept == 680_000


def test_large_free_blocks_are_given_back():
    recycled.empty_cache()
    for size in (20_000, 80_000):
        recycled.empty((size,), np.dtype(np.uint8))
    recycled.release(50_000)
    assert recycled.POOL.kept == 20_000
    assert list(recycled.POOL.free) == [20_000]


# Errors


class Elsewhere:
    def __dlpack_device__(self):
        return (2, 0)


class Strange:
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        return np.zeros(2, np.complex64).view(np.float32).astype(np.longdouble).__dlpack__()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: np.asarray(wf.ones(1, requires_grad=True)),
            errors.GradientError,
            "numpy: the tensor requires grad, which other libraries do not track; pass its",
        ),
        (
            lambda: np.from_dlpack(wf.ones(1, requires_grad=True)),
            errors.GradientError,
            "__dlpack__: the tensor requires grad",
        ),
        (
            lambda: copy.deepcopy(wf.ones(1, requires_grad=True) * 1),
            errors.GradientError,
            "deepcopy: expected a leaf, got the result of an operation that gradients flow through",
        ),
        (
            lambda: (wf.ones(1, requires_grad=True) * 1).__reduce_ex__(2),
            errors.GradientError,
            "passing to another process: expected a leaf",
        ),
        (
            lambda: wf.from_dlpack(Elsewhere()),
            errors.ConfigError,
            "from_dlpack: expected memory of the CPU, got device type 2",
        ),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error) as found:
        call()
    assert str(found.value).startswith(text)


def test_elements_that_tensors_cannot_have():
    with pytest.raises((errors.DTypeError, BufferError)):
        wf.from_dlpack(Strange())
    assert wf.tensor([1.0], dtype=wf.bfloat16).numpy().dtype == ml_dtypes.bfloat16


def test_a_buffer_that_is_filled_again_is_trained_on_once():
    w = wf.nn.Parameter(wf.tensor(1.0))
    opt = wf.optim.SGD([w], 0.1)
    buffer = np.zeros(1, np.float32)
    for value in (1, 2, 3):
        buffer[:] = value
        (w * wf.from_numpy(buffer)).sum().backward()
        opt.step()
        opt.zero_grad()
    np.testing.assert_allclose(w.item(), 1.0 - 0.1 * (1 + 2 + 3), rtol=1e-6)
