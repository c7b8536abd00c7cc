"""Horovod's names in a world of one; several ranks are in horovod_checks.py."""

import importlib
import inspect
import json
import pickle

import pytest

import weft as wf
import weft.horovod.torch as hvd
from weft.horovod import collective_table, elastic
from weft.host.cores import KEPT


@pytest.fixture(autouse=True)
def job():
    yield
    hvd.shutdown()


def test_a_state_goes_on_from_its_last_commit(tmp_path, monkeypatch):
    monkeypatch.setenv(KEPT, str(tmp_path))
    told = []

    @hvd.elastic.run
    def train(state):
        begun = state.epoch, state.model.weight.item()
        with wf.no_grad():
            state.model.weight.add_(1)
        state.epoch += 1
        state.commit()
        state.epoch = 100  # is lost
        return begun

    def new_state():
        model = wf.nn.Linear(1, 1)
        wf.nn.init.zeros_(model.weight)
        state = hvd.elastic.TorchState(model, epoch=0)
        state.register_reset_callbacks([lambda: told.append(hvd.size())])
        return state

    assert train(new_state()) == (0, 0.0)
    assert train(new_state()) == (1, 1.0) and told == []
    monkeypatch.setattr(elastic.basics, "size", lambda: 3)
    assert train(new_state()) == (2, 2.0) and told == [1]  # after a job of another size


def test_the_environment_asks_for_a_timeline(tmp_path, monkeypatch):
    path = tmp_path / "there" / "timeline.json"
    monkeypatch.setenv("HOROVOD_TIMELINE", str(path))
    hvd.init(process_sets=[[0]])
    hvd.broadcast(wf.ones(1), 0, name="x")
    hvd.allgather(wf.ones(1))
    hvd.shutdown()
    events = json.loads(path.read_text())
    assert next(e["args"]["name"] for e in events if e["name"] == "process_name") == "x"
    assert {e["name"] for e in events if e["ph"] == "X"} >= {"BROADCAST", "ALLGATHER"}


def test_who_is_who():
    hvd.init()
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()) == (0, 1, 0, 1)
    assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)
    assert hvd.mpi_built() and not hvd.nccl_built() and hvd.join() == 0
    assert hvd.allreduce(wf.tensor([3.0]), op=hvd.Adasum).item() == 3.0


def test_a_row_of_the_table_is_a_function_of_each_door():
    """Names, arguments and their documentation follow the table, and wrong arguments raise."""
    counts = {}
    for binding in (collective_table.TORCH, collective_table.TENSORFLOW, collective_table.KERAS):
        face = importlib.import_module(binding.module.removesuffix(".collective"))
        for collective in collective_table.COLLECTIVES.values():
            for form in collective.forms if binding.name in collective.orders else ():
                assert (form.name in face.__all__) == binding.has(form)
                if not binding.has(form):
                    continue
                function = getattr(face, form.name)
                names = list(inspect.signature(function).parameters)
                assert names[0] == binding.first + "s" * form.grouped
                assert ("compression" in names) <= (not form.in_place and not form.later)
                assert all(f"\n    {name}: " in function.__doc__ for name in names)
                assert pickle.loads(pickle.dumps(function)) is function
                for wrong in ((), (1,) * (len(names) + 1)):
                    with pytest.raises(TypeError):
                        function(*wrong)
                with pytest.raises(TypeError, match=names[0]):
                    function(1, **{names[0]: 1})
                with pytest.raises(TypeError, match="no_such"):
                    function(1, *[0] * ("root_rank" in names), no_such=1)
                counts[binding.name] = counts.get(binding.name, 0) + 1
    assert counts == {"torch": 22, "tensorflow": 8, "keras": 4}
