"""Map functions of Weft operations are compiled and called on batches; others are not."""

import numpy as np
import pytest

import weft as wf
from weft.data import Dataset

ROWS = np.random.default_rng(0).random((20, 3), np.float32)


@pytest.mark.parametrize("threads", [None, 2])
def test_operations_run_once_on_a_batch(threads):
    shapes = []

    def normalized(x, n):
        shapes.append(type(x).__name__)
        return {"x": wf.relu(x - wf.mean(x)), "n": n}

    dataset = Dataset.from_tensor_slices((ROWS, np.arange(20)))
    batches = list(dataset.map(normalized, threads).batch(8))
    expected = np.maximum(ROWS - ROWS.mean(1, keepdims=True), 0)
    assert np.allclose(np.concatenate([b["x"].numpy() for b in batches]), expected, atol=1e-6)
    assert [b["n"].shape[0] for b in batches] == [8, 8, 4]
    assert len(shapes) < 10  # traced, not called for each element


def test_a_function_that_reads_values_is_called_for_each_element():
    def looked(x):
        return wf.relu(x) if float(wf.sum(x)) > 1.5 else -wf.relu(x)

    found = next(iter(Dataset.from_tensor_slices(ROWS).map(looked).batch(20))).numpy()
    sign = np.where(ROWS.sum(1, keepdims=True) > 1.5, 1, -1)
    assert np.allclose(found, ROWS * sign)


def test_functions_of_numpy_get_arrays():
    def flipped(x):
        assert type(x) is np.ndarray
        return np.flip(x) + np.random.default_rng(0).random()

    found = next(iter(Dataset.from_tensor_slices(ROWS).map(flipped).batch(20)))
    assert np.allclose(found.numpy(), ROWS[:, ::-1] + np.random.default_rng(0).random())


def test_an_error_names_the_element():
    def wrong(x):
        return wf.reshape(x, (2, 2))

    with pytest.raises(RuntimeError) as caught:
        list(Dataset.from_tensor_slices(ROWS).map(wrong).batch(4))
    assert caught.value.__notes__ == ["raised by map(wrong) at element 0"]
