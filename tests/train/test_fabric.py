"""`Fabric`: a written-out loop with its precision, files, loggers and callbacks."""

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ArgumentError
from weft.train import Fabric

X = wf.tensor(np.random.default_rng(0).normal(size=(4, 8, 4)).astype("float32"))


def net():
    wf.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def trained(precision):
    """Parameters after a loop by `Fabric`, and the type of the network's results."""
    fabric = Fabric(accelerator="cpu", devices=1, precision=precision)
    model, optimizer = net(), None
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = fabric.setup(model, optimizer)
    for x in fabric.setup_dataloaders(list(X)):
        optimizer.zero_grad()
        found = model(x)
        fabric.backward((found**2).mean())
        fabric.clip_gradients(model, optimizer, max_norm=0.5)
        optimizer.step()
    return [p.detach().float().numpy() for p in model.parameters()], found.dtype


def test_a_loop_is_the_one_written_without_it():
    own = net()
    optimizer = wf.optim.SGD(own.parameters(), lr=0.1)
    for x in X:
        optimizer.zero_grad()
        (own(x) ** 2).mean().backward()
        nn.utils.clip_grad_norm_(own.parameters(), 0.5)
        optimizer.step()
    expected = [p.detach().numpy() for p in own.parameters()]
    for precision, tolerance in (("32-true", 0), ("64-true", 1e-6), ("bf16-mixed", 2e-2)):
        found, dtype = trained(precision)
        assert dtype is wf.float32
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_files_have_the_states_of_objects(tmp_path):
    fabric = Fabric()
    model = fabric.setup(net())
    state = {"model": model, "step": 7, "rest": wf.ones(2)}
    fabric.save(tmp_path / "all.ckpt", state, filter={"model": lambda name, value: "0." in name})
    fresh = {"model": fabric.setup(net()), "step": 0}
    with wf.no_grad():
        fresh["model"].module[0].weight.zero_()
    left = fabric.load(tmp_path / "all.ckpt", fresh, strict=False)
    assert fresh["step"] == 7 and list(left) == ["rest"]
    assert (fresh["model"].module[0].weight == model.module[0].weight).all()
    with pytest.raises(ArgumentError, match="expected 'other'"):
        fabric.load(tmp_path / "all.ckpt", {"other": net()})


def test_steps_of_modules_loggers_callbacks_and_launch():
    class Steps(wf.train.Module):
        def training_step(self, batch):
            return (wf.ones(2, 2) @ batch).dtype

    class Seen:
        metrics, ends = [], []

        def log_metrics(self, metrics, step):
            self.metrics.append((metrics, step))

        def on_end(self, loss):
            self.ends.append(loss)

    seen = Seen()
    fabric = Fabric(precision="bf16-mixed", loggers=seen, callbacks=[seen, object()])
    assert fabric.setup(Steps()).training_step(wf.ones(2, 2)) is wf.bfloat16
    fabric.log("loss", wf.tensor(2.0), step=3)
    fabric.call("on_end", loss=1, other=2)
    assert seen.metrics == [({"loss": 2.0}, 3)] and seen.ends == [1]
    assert fabric.launch(lambda own, x: (own.world_size, x), 5) == (1, 5)
    assert fabric.all_reduce(3.0) == 3.0 and fabric.is_global_zero


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Fabric(devices=2), "expected devices 1"),
        (lambda: Fabric(plugins=["x"]), "plugins=None"),
        (lambda: Fabric().setup(Fabric().setup(net())), "not set up before"),
        (lambda: Fabric().clip_gradients(None, None), "either clip_val or max_norm"),
    ],
)
def test_refused(call, text):
    with pytest.raises(ArgumentError, match=text):
        call()


def test_blocks_and_parts_of_a_set_up(tmp_path):
    fabric = Fabric()
    model = net()
    optimizers = [wf.optim.SGD(model.parameters(), lr=0.1) for _ in range(2)]
    assert fabric.setup_optimizers(optimizers[0]) is optimizers[0]
    assert list(fabric.setup_optimizers(*optimizers)) == optimizers
    done = []
    with fabric.rank_zero_first(), fabric.init_tensor(), fabric.no_backward_sync(model):
        done.append(wf.ones(2))
    assert len(done) == 1
    wf.save(model.state_dict(), tmp_path / "raw.pt")
    other = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    fabric.load_raw(tmp_path / "raw.pt", other)
    assert (other[0].weight == model[0].weight).all()
    wf.save({"0.weight": model[0].weight + 1}, tmp_path / "part.pt")
    with pytest.raises(Exception, match=r"0\.bias"):
        fabric.load_raw(tmp_path / "part.pt", other)
    fabric.load_raw(tmp_path / "part.pt", other, strict=False)
    assert (other[0].weight == model[0].weight + 1).all()
    wf.save(optimizers[0].state_dict(), tmp_path / "optimizer.pt")
    fabric.load_raw(tmp_path / "optimizer.pt", optimizers[1])
