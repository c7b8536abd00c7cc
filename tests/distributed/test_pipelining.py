"""Orders of passes, and how models are cut; what ranks do with them is in pipeline_checks.py."""

import itertools

import pytest

import weft as wf
from weft.distributed.pipelining import SplitPoint, order, pipeline
from weft.errors import ArgumentError


def orders():
    for ranks, count in itertools.product(range(1, 6), range(1, 9)):
        yield ranks, [order.all_then_all(r, count) for r in range(ranks)], ranks, count
        yield ranks, [order.one_by_one(r, ranks, count) for r in range(ranks)], ranks, count
        for chunks in range(1, 4):
            if count % max(1, count // ranks) == 0:
                found = [order.interleaved(r, ranks, chunks, count) for r in range(ranks)]
                yield ranks, found, ranks * chunks, count


def test_no_rank_waits_for_ever_and_each_pass_happens_once():
    for ranks, by_rank, stages, count in orders():
        left = [list(passes) for passes in by_rank]
        done = set()
        while any(left):
            ready = [r for r in range(ranks) if left[r] and may_run(left[r][0], done, stages)]
            assert ready, (ranks, stages, count, [x[:1] for x in left])
            done.update(tuple(left[r].pop(0)) for r in ready)
        assert len(done) == sum(map(len, by_rank)) == 2 * stages * count


def may_run(each, done, stages):
    stage, backward, i = each
    in_order = i == 0 or (stage, backward, i - 1) in done
    if not backward:
        return in_order and (stage == 0 or (stage - 1, False, i) in done)
    behind = (stage, False, i) if stage == stages - 1 else (stage + 1, True, i)
    return in_order and behind in done and (stage, False, i) in done


class Net(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = wf.nn.Linear(2, 4)
        self.blocks = wf.nn.Sequential(wf.nn.ReLU(), wf.nn.Linear(4, 4), wf.nn.Tanh())
        self.head = wf.nn.Linear(4, 1)

    def forward(self, x, double=False):
        x = self.blocks(self.stem(x))
        return self.head(x * 2 if double else x)


def test_a_model_is_cut_under_its_own_names():
    net, x = Net(), wf.randn(3, 2)
    spec = {"blocks.1": SplitPoint.BEGINNING, "blocks.2": SplitPoint.END}
    pipe = pipeline(net, (x,), split_spec=spec)
    names = [[n for n, _ in pipe.get_stage_module(i).named_parameters()] for i in range(3)]
    assert names == [
        ["stem.weight", "stem.bias"], ["blocks.1.weight", "blocks.1.bias"],
        ["head.weight", "head.bias"],
    ]  # fmt: skip
    y = x
    for i in range(pipe.num_stages):
        y = pipe.get_stage_module(i)(y)
    assert y.tolist() == net(x).tolist()
    assert pipe.get_stage_module(2).head.weight is net.head.weight
    assert pipeline(net, (x,)).get_stage_module(0) is net


def test_what_cannot_be_cut_is_refused():
    x, at = wf.randn(3, 2), {"head": SplitPoint.BEGINNING}
    with pytest.raises(ArgumentError, match="between blocks and head it does something else"):
        pipeline(Net(), (x,), {"double": True}, split_spec=at)
    with pytest.raises(ArgumentError, match="among blocks, head, stem or inside of them"):
        pipeline(Net(), (x,), split_spec={"tail": SplitPoint.END})
    tied = wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.Tanh(), wf.nn.Linear(2, 2))
    tied[2].weight = tied[0].weight
    with pytest.raises(ArgumentError, match=r"got 2\.weight, which is 0\.weight of a stage before"):
        pipeline(tied, (x,), split_spec={"1": SplitPoint.BEGINNING})
    with pytest.raises(ArgumentError, match="a stage from 0 to 0, got 1"):
        pipeline(Net(), (x,)).build_stage(1)
