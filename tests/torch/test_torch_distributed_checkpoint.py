"""`weft.distributed.checkpoint` in one process without a process group, beside PyTorch's."""

import warnings

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as torch_dcp
import torch.distributed.checkpoint.state_dict as torch_state

import weft as wf
import weft.distributed as dist
import weft.distributed.checkpoint as dcp
from weft.checkpoint import Checkpointer, RandomState, Slice
from weft.distributed.checkpoint import options
from weft.distributed.checkpoint import state_dict as states
from weft.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from weft.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from weft.errors import ArgumentError, CheckpointError, DistributedError, StateError


def nest(lib):
    return {
        "a": {"b": lib.arange(6.0).reshape(2, 3), "n": 3, "flags": [True, None]},
        "list": [lib.ones(2), {"c": lib.zeros(())}, [lib.ones(1)]], "name": "x", "none": None,
        "betas": (0.9, 0.999), 7: lib.ones(1), "empty": {},
    }  # fmt: skip


def zeroed(state):
    return {
        "a": {"b": wf.zeros(2, 3), "n": 0, "flags": []},
        "list": [wf.zeros(2), {"c": wf.ones(())}, [wf.zeros(1)]], "name": "", "none": 5,
        "betas": (), 7: wf.zeros(1), "empty": {},
    }  # fmt: skip


def listed(x):
    if isinstance(x, wf.Tensor):
        return x.tolist()
    if isinstance(x, dict):
        return {k: listed(one) for k, one in x.items()}
    return type(x)(map(listed, x)) if isinstance(x, list | tuple) else x


def test_a_nested_state_is_loaded_in_place_by_pytorchs_names(tmp_path):
    found = dcp.save(nest(wf), checkpoint_id=tmp_path / "a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch_dcp.save(nest(torch), checkpoint_id=tmp_path / "b", no_dist=True)
    assert set(found.state_dict_metadata) == set(theirs.state_dict_metadata)
    assert dcp.FileSystemReader(tmp_path / "a").read_metadata() == found
    state = zeroed(nest(wf))
    inner, tensor, items = state["a"], state["a"]["b"], state["list"]
    dcp.load(state, checkpoint_id=str(tmp_path / "a"))
    assert listed(state) == listed(nest(wf))
    assert state["a"] is inner and inner["b"] is tensor and state["list"] is items
    flat = {"a.b": wf.zeros(2, 3, dtype=wf.float64), "list.2.0": np.zeros(1)}
    dcp.load(flat, storage_reader=dcp.FileSystemReader(tmp_path / "a"))
    assert flat["a.b"].dtype is wf.float64 and flat["a.b"].sum().item() == 15
    assert flat["list.2.0"].tolist() == [1.0]
    with pytest.raises(dcp.CheckpointException, match="dcp_to_torch_save and Weft's torch_save"):
        dcp.load(state, checkpoint_id=tmp_path / "b")


class Counter:
    def __init__(self, count):
        self.count, self.hidden = count, wf.full((2,), count)

    def state_dict(self):
        return {"count": self.count, "hidden": self.hidden}

    def load_state_dict(self, state):
        assert state["hidden"] is self.hidden
        self.count = state["count"]


def test_objects_load_their_state(tmp_path):
    assert isinstance(Counter(1), dcp.Stateful) and not isinstance(1, dcp.Stateful)
    model, random = wf.nn.Linear(3, 2), RandomState()
    optimizer = wf.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    schedule = wf.optim.lr_scheduler.StepLR(optimizer, 2)
    model(wf.ones(1, 3)).sum().backward()
    optimizer.step()
    schedule.step()
    state = {"m": model, "o": optimizer, "s": schedule, "c": Counter(3), "r": random}
    dcp.save(state, checkpoint_id=tmp_path)
    drawn = wf.rand(3).tolist()
    other = wf.nn.Linear(3, 2)
    again = wf.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)  # no step: no state yet
    fresh = {"m": other, "o": again, "c": Counter(0), "r": random}
    fresh["s"] = wf.optim.lr_scheduler.StepLR(again, 2)
    dcp.load(fresh, checkpoint_id=tmp_path)
    assert listed(other.state_dict()) == listed(model.state_dict())
    assert listed(again.state_dict()) == listed(optimizer.state_dict())
    assert fresh["c"].count == 3 and fresh["c"].hidden.tolist() == [3, 3]
    assert fresh["s"].last_epoch == 1 and wf.rand(3).tolist() == drawn
    kept = Checkpointer(tmp_path)  # one format: the other interface reads and keeps it
    assert listed(kept.restore(into={"m": wf.nn.Linear(3, 2)}).state["o"]) == listed(
        optimizer.state_dict()
    )
    kept.save(5, {"m": model, "x": wf.ones(1)})
    kept.close()
    x = {"x": wf.zeros(1)}
    dcp.load(x, checkpoint_id=tmp_path)
    assert x["x"].item() == 1.0 and kept.steps() == [0, 5]
    dcp.load({"m": other}, checkpoint_id=tmp_path / "step-0")


def test_what_is_not_there_and_what_differs(tmp_path):
    dcp.save({"a": wf.ones(2), "n": 1}, checkpoint_id=tmp_path)
    x = wf.zeros(2)
    wrong = {"a": x, "b": x, "n": wf.zeros(1), "c": {"d": 1}}
    with pytest.raises(CheckpointError) as caught:
        dcp.load(wrong, checkpoint_id=tmp_path)
    assert str(caught.value) == (
        f"load: {tmp_path}/step-0 does not match the state to restore:\n"
        "  missing in the checkpoint: b, c.d\n"
        "  of another kind, shape or type: n: expected float32(1,), got int"
    )
    failure, stack = caught.value.failures[0]
    assert isinstance(failure, CheckpointError) and stack[-1].name == "_found"
    piece = Slice(x, (3,), (0,))
    for bad, text in ((1, "expected int, got"), (piece, "expected a piece of shape (3,), got")):
        bad = {"n": 1, "a": bad}
        with pytest.raises(dcp.CheckpointException, match="of another kind") as caught:
            dcp.load(bad, checkpoint_id=tmp_path)
        assert f"a: {text} float32(2,)" in str(caught.value)
    with pytest.raises(dcp.CheckpointException, match="a: expected an optimizer's state, got fl"):
        dcp.load({"a": wf.optim.SGD([x.requires_grad_()], lr=0.1)}, checkpoint_id=tmp_path)
    x = wf.zeros(2)
    partial = {"a": x, "b": "kept"}
    planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
    dcp.load(partial, checkpoint_id=tmp_path, planner=planner)
    assert x.tolist() == [1, 1] and partial["b"] == "kept"
    with pytest.raises(dcp.CheckpointException, match=r"got 'a\.b' twice"):
        dcp.save({"a.b": 1, "a": {"b": 2}}, checkpoint_id=tmp_path)
    (file,) = (tmp_path / "step-0").glob("*.safetensors")
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    with pytest.raises(dcp.CheckpointException, match="is damaged"):
        dcp.load({"a": x}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="which is a file"):
        dcp.load({"a": x}, checkpoint_id=file)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "save: expected checkpoint_id, the path of a folder"),
        ({"checkpoint_id": "s3://bucket/x"}, "save: expected the path of a folder, got 's3:"),
        ({"storage_writer": dcp.FileSystemReader("x")}, "expected a FileSystemWriter, got a Fi"),
        ({"checkpoint_id": "x", "use_collectives": False}, "save: expected use_collectives=True"),
        ({"checkpoint_id": "x", "planner": dcp.DefaultLoadPlanner()}, "got a DefaultLoadPlanner"),
    ],
)
def test_options_that_ask_for_what_does_not_exist(given, text):
    with pytest.raises(ArgumentError, match=text):
        dcp.save({"a": 1}, **given)


def test_writers_and_older_names(tmp_path):
    writer = dcp.FileSystemWriter(tmp_path / "new", thread_count=4, overwrite=False)
    with pytest.warns(FutureWarning, match="save_state_dict is deprecated"):
        dcp.save_state_dict({"a": wf.ones(1)}, writer, planner=dcp.DefaultSavePlanner())
    with pytest.raises(dcp.CheckpointException, match="has a checkpoint, and overwrite=False"):
        dcp.save({"a": wf.zeros(1)}, storage_writer=writer)
    dcp.save({"a": wf.full((1,), 2.0)}, checkpoint_id=writer.checkpoint_id)  # replaces it
    state = {"a": wf.zeros(1)}
    with pytest.warns(FutureWarning, match="load_state_dict is deprecated"):
        dcp.load_state_dict(state, dcp.FileSystemReader(tmp_path / "new"))
    assert state["a"].item() == 2.0
    with pytest.raises(ArgumentError, match="async_save: expected async_checkpointer_type="):
        kind = AsyncCheckpointerType.PROCESS
        dcp.async_save(state, checkpoint_id=tmp_path, async_checkpointer_type=kind)


def test_ranks_without_a_process_group_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(options, "launched", lambda: True)
    with pytest.warns(UserWarning, match="save: there is no process group, so each") as caught:
        dcp.save({"a": 1}, checkpoint_id=tmp_path)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="load: there is no process group") as caught:
        dcp.load({"a": 0}, checkpoint_id=tmp_path)
    assert caught[0].filename == __file__
    dcp.load({"a": 0}, checkpoint_id=tmp_path, no_dist=True)


def test_in_the_background(tmp_path):
    x = wf.arange(1e6)
    first = dcp.async_save({"x": x}, checkpoint_id=tmp_path / "1")
    x += 1
    second = dcp.async_save({"x": x}, checkpoint_id=tmp_path / "2")
    x += 1
    for number, future in ((0, first), (1, second)):
        assert future.result(60).state_dict_metadata["x"].size == (1_000_000,)
        dcp.load({"x": x}, checkpoint_id=tmp_path / str(number + 1))
        assert x[:2].tolist() == [number, number + 1]
    (tmp_path / "file").write_text("")
    with pytest.raises(dcp.CheckpointException, match="file"):
        dcp.async_save({"x": x}, checkpoint_id=tmp_path / "file")
    with pytest.raises(dcp.CheckpointException, match="expected numbers"):
        dcp.async_save({"x": np.array(["a"])}, checkpoint_id=tmp_path / "3")
    dcp.async_save({"x": x}, checkpoint_id=tmp_path / "1").result(60)  # locks are free


def test_files_of_both_libraries(tmp_path):
    state = {"w": torch.arange(3.0), "n": {"k": 2}}
    torch.save(state, tmp_path / "a.pt")
    torch_save_to_dcp(tmp_path / "a.pt", tmp_path / "b")
    dcp_to_torch_save(tmp_path / "b", tmp_path / "c.safetensors")
    found = wf.load(tmp_path / "c.safetensors")
    assert listed(found) == {"w": [0, 1, 2], "n": {"k": 2}}


def pair(lib):
    net = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3), lib.nn.Linear(3, 1))
    net[0].bias.requires_grad_(False)
    groups = [{"params": [net[2].weight], "lr": 0.5}, {"params": [net[0].weight, net[2].bias]}]
    first = lib.optim.Adam([*groups, {"params": [net[0].bias]}], lr=0.1)
    return net, [first, lib.optim.SGD(net[1].parameters(), lr=0.2, momentum=0.9)]


@pytest.mark.parametrize(
    "chosen",
    [{}, {"ignore_frozen_params": True}, {"flatten_optimizer_state_dict": True},
     {"full_state_dict": True, "cpu_offload": True}],
)  # fmt: skip
def test_names_are_pytorchs(chosen):
    found, wanted = [], []
    for lib, module, into in ((torch, torch_state, wanted), (wf, states, found)):
        net, optimizers = pair(lib)
        for x in (net, *optimizers):
            assert x is not None
        net(lib.ones(4, 2)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
        into += module.get_state_dict(net, optimizers, options=module.StateDictOptions(**chosen))
    assert set(found[0]) == set(wanted[0])
    if "flatten_optimizer_state_dict" in chosen:
        assert {k for k in found[1] if k.startswith("state") and not k.endswith("step")} == {
            k for k in wanted[1] if k.startswith("state") and not k.endswith("step")
        }
        assert found[1]["param_groups.2.weight.lr"] == 0.5
    else:
        assert set(found[1]["state"]) == set(wanted[1]["state"])
        names = [[g["params"] for g in state["param_groups"]] for state in (found[1], wanted[1])]
        assert names[0] == names[1]
    net, optimizers = pair(wf)
    strict = not chosen.get("ignore_frozen_params")
    loaded = states.StateDictOptions(**chosen, strict=strict)
    keys = states.set_state_dict(
        net, optimizers, model_state_dict=found[0], optim_state_dict=found[1], options=loaded
    )
    assert keys.missing_keys == ([] if strict else ["0.bias"])
    again = states.get_state_dict(net, optimizers, options=loaded)
    assert listed(again[0]) == listed(found[0]) and listed(again[1]) == listed(found[1])


def test_states_that_do_not_fit():
    net = wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.Linear(2, 1))
    optimizer = wf.optim.Adam(net.parameters())
    with pytest.warns(FutureWarning, match="submodules is deprecated"):
        found = states.get_model_state_dict(net, submodules={net[1]})
    assert list(found) == ["1.weight", "1.bias"]
    with pytest.raises(StateError, match="Missing"):
        states.set_model_state_dict(net, found)
    state = states.get_optimizer_state_dict(net, optimizer)
    assert state["state"]["0.bias"]["step"] == 0  # as before the first step
    del state["state"]["1.bias"]
    with pytest.raises(StateError, match=r"expected the state of '1\.bias', got none"):
        states.set_optimizer_state_dict(net, optimizer, state)
    lenient = states.StateDictOptions(strict=False)
    states.set_optimizer_state_dict(net, optimizer, state, options=lenient)
    with pytest.raises(StateError, match=r"expected a group with 0\.weight, 0\.bias"):
        states.set_optimizer_state_dict(net, optimizer, {"state": {}, "param_groups": []})
    with pytest.raises(StateError, match=r"got 'state\.2\.weight\.step'"):
        states.set_optimizer_state_dict(net, optimizer, {"state.2.weight.step": 1})
    for empty in (states.set_model_state_dict, lambda n, s: states.set_optimizer_state_dict(
        n, optimizer, s
    )):  # fmt: skip
        with pytest.raises(ArgumentError, match="expected a state, got an empty one"):
            empty(net, {})
    with pytest.raises(ArgumentError, match="expected parameters of the model, got another as"):
        states.get_optimizer_state_dict(wf.nn.Linear(2, 1), optimizer)
    with pytest.raises(ArgumentError, match="expected optimizers of weft"):
        states.get_optimizer_state_dict(net, [torch.nn.Linear(1, 1)])
    with pytest.raises(ArgumentError, match="expected dsd_fqn_modifiers='_fqn_modifiers'"):
        states.get_model_state_dict(net, options=states.StateDictOptions(dsd_fqn_modifiers="x"))
    with pytest.raises(DistributedError):
        sent = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        states.set_model_state_dict(net, net.state_dict(), options=sent)
    assert not dist.is_initialized()
