"""Routes: the messages of a partitioned step, and which reply brings which value."""

from weft.cluster.route import Post, Route, routes
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.passes.partition import Partition, Stage
from weft.passes.step import Step

PS, WORKER, OTHER = (f"/job:{j}/replica:0/task:0" for j in ("ps", "worker", "other"))
EMPTY = Step(Graph(), (), ())


def partition(stages, feeds=(), fetches=()):
    """Stages as (task, inputs, outputs)."""
    made = [Stage(f"{task}/device:CPU:0", EMPTY, tuple(i), tuple(o)) for task, i, o in stages]
    count = 1 + max([*feeds, *fetches, *(v for _, i, o in stages for v in (*i, *o))])
    kinds = (TensorType(float32, ()),) * count
    return Partition(tuple(made), tuple(feeds), tuple(fetches), kinds)


def test_a_read_is_one_message_and_its_reply():
    found = routes(partition([(PS, [], [0])], fetches=[0]), WORKER)
    assert found == {WORKER: Route(WORKER, ()), PS: Route(PS, (), first=(0,))}


def test_a_training_step_is_a_run_and_a_finish():
    # 0, 1: feeds; 2: the variable; 3: its gradient; 4: the loss; 5: the step's number afterwards
    stages = [(PS, [], [2]), (WORKER, [0, 2], [3, 4]), (PS, [1, 3], [5])]
    found = routes(partition(stages, [0, 1], [4, 5]), WORKER)
    assert found[PS] == Route(PS, (1,), first=(2,), last=(5,), later=(2,))
    assert found[WORKER].posts == (Post(1, PS, (3,), "finish"),)


def test_a_task_that_only_takes_values_gets_one_message():
    stages = [(WORKER, [0], [1]), (PS, [0, 1], [2])]
    found = routes(partition(stages, [0], [2]), WORKER)
    assert found[PS] == Route(PS, (0, 1), first=(2,), prompt=False)
    assert found[WORKER].posts == (Post(0, PS, (1,), "run"),)


def test_what_no_reply_brings_in_time_is_posted():
    # the server gives 1 after it got 0, and the worker's 2 depends on it
    stages = [(WORKER, [], [0]), (PS, [0], [1]), (WORKER, [1], [2]), (PS, [2], [3])]
    found = routes(partition(stages, fetches=[3]), WORKER)
    assert found[PS] == Route(PS, (), first=(3,), posts=(Post(1, WORKER, (1,)),))
    assert found[WORKER].posts == (Post(0, PS, (0,)), Post(2, PS, (2,)))


def test_a_master_without_stages_sends_nothing():
    stages = [(PS, [], [0]), (OTHER, [0], [1]), (PS, [1], [2])]
    found = routes(partition(stages, fetches=[2]), WORKER)
    assert found[PS] == Route(PS, (), first=(2,), posts=(Post(0, OTHER, (0,)),))
    assert found[OTHER] == Route(OTHER, (), posts=(Post(1, PS, (1,)),))


def test_a_value_for_a_task_that_waits_for_the_master_elsewhere():
    # 3 could come with the last reply, but another task that the server waits for needs it first
    stages = [
        (WORKER, [], [0]), (PS, [0], [3]), (WORKER, [3], [4]), (OTHER, [4], [5]), (PS, [5], []),
    ]  # fmt: skip
    found = routes(partition(stages), WORKER)
    assert found[WORKER].posts == (Post(0, PS, (0,)), Post(2, OTHER, (4,), "run"))
    assert found[PS] == Route(PS, (), posts=(Post(1, WORKER, (3,)),))
    assert found[OTHER] == Route(OTHER, (4,), posts=(Post(3, PS, (5,)),), prompt=False)
