"""Random numbers in functions of a dataset: from its seed, in whatever thread they are drawn."""

import numpy as np
import pytest

import weft as wf
from weft.data import Dataset


def generated():
    yield from (np.float32(i) for i in range(24))


def noisy(x):
    return x * 0 + wf.rand(())


def noisy_array(x):
    return np.float32(wf.rand(1).item())  # an array, so it is called for each element


WAYS = {
    "map": lambda d, f: d.map(f).batch(4),
    "threads": lambda d, f: d.map(f, 3).batch(4),
    "prefetched": lambda d, f: d.map(f).batch(4).prefetch(3),
    "batched": lambda d, f: d.batch(4).map(f, 2).map(lambda x: x + wf.zeros(4)),
    "filtered": lambda d, f: d.filter(lambda x: wf.rand(1).item() < 0.7).map(f).prefetch(4),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [noisy, noisy_array])
def test_numbers_follow_from_the_seed_and_leave_the_generator_alone(way, function):
    found = []
    for busy in (False, True):
        wf.manual_seed(4)
        source = Dataset.from_generator(generated)
        numbers, beside = [], []
        dataset = WAYS[way](source, function)
        for _ in range(2):
            for batch in dataset:
                numbers.append(batch.tolist())
                if busy:
                    beside.append(wf.rand(1).item())
        found.append(numbers)
        if busy and way != "filtered":
            wf.manual_seed(4)
            wf.rand(1)  # the dataset's seed
            assert beside == [wf.rand(1).item() for _ in beside]
    assert found[0] == found[1]
    drawn = [number for batch in found[0] for number in np.ravel(batch)]
    assert len(set(drawn)) == (12 if way == "batched" else len(drawn))  # calls


def test_a_resumed_pass_draws_the_same_numbers():
    dataset = Dataset.from_generator(generated).map(noisy, 3).batch(3)
    running = iter(dataset)
    next(running), next(running)
    again = iter(dataset)
    again.load_state_dict(running.state_dict())
    assert [x.tolist() for x in again] == [x.tolist() for x in running]
