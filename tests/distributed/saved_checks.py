"""`weft.distributed.checkpoint` on several ranks; called by `job_checks.py`."""

import contextlib
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

import weft as wf
import weft.distributed as dist
import weft.distributed.checkpoint as dcp
from weft.checkpoint import Checkpointer, PerRank, Slice
from weft.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from weft.distributed.checkpoint.stateful import Stateful
from weft.distributed.fsdp import fully_shard
from weft.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from weft.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from weft.errors import ArgumentError
from weft.formats.checkpoint_folder import writer
from weft.formats.safetensors import ArrayFile, read_arrays

FULL = StateDictOptions(full_state_dict=True)


class App(Stateful):
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optimizer}

    def load_state_dict(self, state_dict):
        set_state_dict(
            self.model, self.optimizer, model_state_dict=state_dict["model"],
            optim_state_dict=state_dict["optim"],
        )  # fmt: skip


def network(seed=0):
    """Rows that no number of ranks divides, a buffer, and a weight with two names."""
    wf.manual_seed(seed)
    net = wf.nn.Sequential(wf.nn.Linear(5, 7), wf.nn.BatchNorm1d(7), wf.nn.Linear(7, 5))
    net.append(wf.nn.Linear(5, 7))
    net[3].weight = net[0].weight
    return net


def trained(net, steps=1):
    optimizer = wf.optim.Adam(net.parameters(), lr=0.1)
    for step in range(steps):
        net(wf.arange(20.0).reshape(4, 5) * (step + 1)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return optimizer


def bits(model, optimizer):
    """Names, bits and options of the whole state; all ranks that have a part call it."""
    state, optim = get_state_dict(model, optimizer, options=FULL)
    entries = {f"{k}.{n}": x for k, own in optim["state"].items() for n, x in own.items()}
    found = {k: np.asarray(x).tobytes() for k, x in {**state, **entries}.items()}
    return found, optim["param_groups"]


@contextlib.contextmanager
def folder():
    """A folder that all ranks know."""
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box)
    yield box[0]
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(box[0])


def check_saved_on_two_loaded_on_others(rank, size):
    pair = dist.DeviceMesh("cpu", [0, 1])
    others = {n: dist.DeviceMesh("cpu", list(range(n))) for n in (2, 3, 4) if size - 2 < n <= size}
    with folder() as path:
        wanted = None
        if rank < 2:
            model = fully_shard(network(), mesh=pair)
            optimizer = trained(model)
            group = pair.get_group()
            dcp.save({"app": App(model, optimizer)}, checkpoint_id=path, process_group=group)
            wanted = bits(model, optimizer)
            assert len(wanted[0]) == 11 + 7 * 3 and wanted[1][0]["lr"] == 0.1
        box = [None] if wanted is None else [wf.tensor(list(b"".join(wanted[0].values())))]
        dist.broadcast_object_list(box)
        for number, mesh in {1: None, **others}.items():
            if rank < number:
                model = network(1) if mesh is None else fully_shard(network(1), mesh=mesh)
                optimizer = wf.optim.Adam(model.parameters())
                group = None if mesh is None else mesh.get_group()
                dcp.load(
                    {"app": App(model, optimizer)}, checkpoint_id=path, process_group=group,
                    no_dist=mesh is None,
                )  # fmt: skip
                found = bits(model, optimizer)
                assert wanted is None or found == wanted
                assert list(b"".join(found[0].values())) == box[0].tolist()


def check_layers_divided_twice(rank, size):
    """Tensor parallelism and `fully_shard` on a grid; the optimizer itself in the state dict."""
    mesh = dist.init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))

    def made(seed):
        wf.manual_seed(seed)
        net = wf.nn.Sequential(wf.nn.Linear(4, 6), wf.nn.ReLU(), wf.nn.Linear(6, 4))
        parallelize_module(net, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        return fully_shard(net, mesh=mesh["dp"])

    net = made(0)
    optimizer = wf.optim.Adam(net.parameters(), lr=0.1)
    net(wf.ones(2, 4)).sum().backward()
    optimizer.step()
    with folder() as path:
        dcp.save({"model": net, "optimizer": optimizer}, checkpoint_id=path)
        other = made(1)
        again = wf.optim.Adam(other.parameters())
        dcp.load({"model": other, "optimizer": again}, checkpoint_id=path)
        assert bits(other, again) == bits(net, optimizer)
        alone = wf.nn.Sequential(wf.nn.Linear(4, 6), wf.nn.ReLU(), wf.nn.Linear(6, 4))
        dcp.load({"model": alone}, checkpoint_id=path)
        whole = get_model_state_dict(net, options=FULL)
        assert {k: x.tolist() for k, x in alone.state_dict().items()} == {
            k: x.tolist() for k, x in whole.items()
        }


def check_what_some_ranks_have(rank, size):
    """Keys of one rank, items of one rank, pieces on several ranks, values of each rank."""
    mesh = dist.init_device_mesh("cpu", (2, size // 2))
    x = wf.arange(32.0).reshape(8, 4).to(wf.bfloat16)
    divided = distribute_tensor(x, mesh, [Shard(0), Replicate()])
    own = {"layers": {str(rank): wf.full((2,), rank)}, "items": [wf.full((), i) for i in (7, 8)]}
    own["pair"] = (Slice(wf.full((1, 3), rank), (size, 3), (rank, 0)), "text", {"k": rank})
    own |= {"x": divided, "own": PerRank({"rank": rank}), "nothing": wf.zeros(0, 3), "empty": {}}
    if rank == size - 1:
        own["items"].append(wf.ones(3, dtype=wf.int64))
        own["late"] = np.float64(2.5)
    with folder() as path:
        found = dcp.save(own, checkpoint_id=path).state_dict_metadata
        assert dcp.FileSystemReader(path).read_metadata().state_dict_metadata == found
        chunks = [c for x in found.values() for c in getattr(x, "chunks", ())]
        files = [read_arrays(file).arrays for file in Path(path).glob("step-0/*.safetensors")]
        assert len(files) == size and sum(map(len, files)) == len(chunks)  # nothing twice
        assert len(found["pair.0"].chunks) == size and len(found["x"].chunks) == 2
        assert found["x"].properties.dtype is wf.bfloat16 and found["items.2"].size == (3,)
        into = {"layers": {str(i): wf.zeros(2) for i in range(size)}, "late": np.float64(0)}
        into["x"] = distribute_tensor(wf.zeros(8, 4), mesh, [Replicate(), Shard(1)])
        into["items"] = [wf.zeros(()), wf.zeros(()), wf.zeros(3)]
        into["pair"] = (wf.zeros(size, 3), "", {"k": None})
        into["own"], into["nothing"] = PerRank({"rank": 0}), wf.zeros(0, 3)
        dcp.load(into, checkpoint_id=path)
        assert [y.tolist() for y in into["layers"].values()] == [[i, i] for i in range(size)]
        assert [y.tolist() for y in into["items"]] == [7, 8, [1, 1, 1]] and into["late"] == 2.5
        assert into["x"].full_tensor().tolist() == x.tolist()
        assert into["pair"][0][:, 1].tolist() == list(range(size))
        assert into["pair"][1:] == ("text", {"k": 0})
        row, reads = Slice(wf.zeros(1, 3), (size, 3), (rank, 0)), []
        with pytest.MonkeyPatch.context() as patch:
            read = ArrayFile.read
            patch.setattr(ArrayFile, "read", lambda *a: reads.append(a[1]) or read(*a))
            dcp.load({"pair.0": row}, checkpoint_id=path)
        assert row.tensor.tolist() == [[rank] * 3] and reads == ["pair.0.piece"]
        found = Checkpointer(path, rank=rank, world_size=size).restore().state
        assert found["own"] == {"rank": rank} and found["late"].item() == 2.5


def refused(call, *texts):
    """All ranks raise, and say the same."""
    with pytest.raises(dcp.CheckpointException) as caught:
        call()
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, str(caught.value))
    assert len(set(every)) == 1, every
    for text in texts:
        assert text in every[0], every[0]
    return caught.value


def check_refused_by_all(rank, size):
    last = size - 1
    with folder() as path:
        refused(lambda: dcp.load({"a": 1}, checkpoint_id=path), "got /", ", which has none")
        dcp.save({"a": wf.ones(2, 3), "b": 1}, checkpoint_id=path)
        a = wf.zeros(2, 3)
        extra = {"c": 1, "d": {"e": a}} if rank == last else {}
        error = refused(
            lambda: dcp.load({"a": a, **extra}, checkpoint_id=path),
            f"rank {last}: load: {path}", "missing in the checkpoint: c, d.e",
        )  # fmt: skip
        assert list(error.failures) == [last] and a.sum().item() == 0
        shape = {"a": wf.zeros(3, 2) if rank == 1 else a}
        text = "rank 1: load", "of another kind, shape or type: a: expected float32(3, 2)"
        refused(lambda: dcp.load(shape, checkpoint_id=path), *text)
        wrong = {"a": wf.ones(2 + rank // last)}
        text = f"float32(2,) on rank 0 and float32(3,) on rank {last}"
        refused(lambda: dcp.save(wrong, checkpoint_id=path), text)
        part = Slice(wf.ones(1), (size + 1,), (rank,))
        text = f"expected pieces of all {size + 1} elements of ({size + 1},), got {size}"
        refused(lambda: dcp.save({"a": part}, checkpoint_id=path), text)
        summands = DTensor.from_local(a, dist.init_device_mesh("cpu", (size,)), [Partial()])
        refused(lambda: dcp.save({"a": summands}, checkpoint_id=path), "'a': expected a DTensor")
        odd = {"a": a, "b": print} if rank == 1 else {"a": a}
        refused(lambda: dcp.save(odd, checkpoint_id=path), "rank 1: save: expected tensors")
        refused(lambda: dcp.save({"a": {"m": wf.nn.ReLU()}}, checkpoint_id=path), "'a.m'")
        dcp.load({"a": a}, checkpoint_id=path)  # what was there is there
        assert a.sum().item() == 6


def check_a_full_disk(rank, size):
    """A rank that cannot write: all say so at once, in the background, too."""

    def full(*_):
        raise OSError(28, "No space left on device")

    with folder() as path, pytest.MonkeyPatch.context() as patch:
        state = {"a": wf.full((3,), 1.0)}
        dcp.save(state, checkpoint_id=path)
        for bad in (0, size - 1):
            with patch.context() as now:
                if rank == bad:
                    now.setattr(writer, "write_arrays", full)
                text = f"rank {bad}: [Errno 28] No space left on device"
                refused(lambda: dcp.save({"a": wf.zeros(3)}, checkpoint_id=path), text)
                future = dcp.async_save({"a": wf.zeros(3)}, checkpoint_id=path)
                with pytest.raises(dcp.CheckpointException, match="No space left on device"):
                    future.result(20)
        future = dcp.async_save(state, checkpoint_id=path)
        state["a"].zero_()
        assert future.result(20).state_dict_metadata["a"].size == (3,)
        dcp.load(state, checkpoint_id=path)
        assert state["a"].tolist() == [1.0] * 3


def check_states_by_name(rank, size):
    """Wrapped, sharded, whole on rank 0 alone, sent from rank 0."""
    plain = network()
    wanted = bits(plain, trained(plain, 2))
    wrapped = wf.nn.parallel.DistributedDataParallel(network())
    optimizer = trained(wrapped, 2)
    assert bits(wrapped, optimizer) == wanted
    model, optim = get_state_dict(
        wrapped, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
    )
    assert (not model and not optim) if rank else len(model) == 11
    sent = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    for target in (fully_shard(network(1)), wf.nn.parallel.DistributedDataParallel(network(1))):
        again = wf.optim.Adam(target.parameters())
        set_state_dict(
            target, again, model_state_dict=model, optim_state_dict=optim, options=sent
        )  # fmt: skip
        assert bits(target, again) == wanted
        flat = get_optimizer_state_dict(
            target, again, options=StateDictOptions(flatten_optimizer_state_dict=True)
        )
        assert flat["param_groups.0.weight.lr"] == 0.1 and flat["state.2.bias.step"] == 2
        anew = wf.optim.Adam(target.parameters())
        set_optimizer_state_dict(target, anew, flat)
        assert bits(target, anew) == wanted
    with pytest.raises(ArgumentError, match="expected full_state_dict=True with broadcast"):
        options = StateDictOptions(broadcast_from_rank0=True)
        set_model_state_dict(target, model, options=options)
