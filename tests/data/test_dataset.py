"""`weft.data.Dataset`: yields tensors, takes tensors and arrays."""

import numpy as np

import weft as wf
from weft.data import Dataset


def test_passes_give_tensors_and_training_takes_them():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 3)).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32)
    dataset = Dataset.from_tensor_slices((x, wf.tensor(y))).shuffle(64, seed=0).batch(16)
    model = wf.nn.Linear(3, 1)
    optimizer = wf.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(60):
        for inputs, targets in dataset:
            optimizer.zero_grad()
            loss = ((model(inputs) - targets) ** 2).mean()
            loss.backward()
            optimizer.step()
    assert loss.item() < 1e-5
    assert np.allclose(model.weight.detach().numpy(), [[1, -2, 0.5]], atol=1e-2)


def test_leaves_of_elements():
    dataset = Dataset.from_tensors({"n": 3, "f": 0.5, "text": "a", "a": np.zeros(2, np.float16)})
    (element,) = dataset
    assert element["n"].dtype is wf.int64
    assert element["f"].dtype is wf.float32
    assert element["text"] == "a"
    assert element["a"].dtype is wf.float16
    (raw,) = dataset.as_numpy_iterator()
    assert isinstance(raw["a"], np.ndarray)


def test_elements_can_be_changed_without_changing_the_data():
    rows = np.zeros((3, 2), np.float32)
    for row in Dataset.from_tensor_slices(rows):
        row += 1
    assert not rows.any()


def test_manual_seed_decides_the_order():
    def orders():
        wf.manual_seed(7)
        dataset = Dataset.range(50).shuffle(50)
        return [[int(x) for x in dataset] for _ in range(2)]

    first, second = orders()
    assert first != second
    assert [first, second] == orders()
