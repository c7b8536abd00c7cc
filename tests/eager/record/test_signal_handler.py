"""A handler of a signal may read values: it runs before or after a computation, not within."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft import config, nn
from weft.eager.record.run import program
from weft.optim import optimizer as optimizers


def trained(model: nn.Module, optimizer: Any, x: wf.Tensor) -> list[np.ndarray[Any, Any]]:
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return [p.numpy(force=True).copy() for p in model.state_dict().values()]


def made() -> tuple[nn.Module, Any]:
    wf.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    return model, wf.optim.SGD(model.parameters(), 0.1, momentum=0.9)


# The last one: between recording an update and giving parameters their new values.
@pytest.mark.parametrize(
    "place",
    [(program, "begun"), (program, "assign_arrays"), (optimizers.Optimizer, "_record")],
)
def test_a_handler_reads_values(place: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> None:
    x = wf.tensor(np.eye(5, 3, dtype=np.float32))
    seen, busy = list[float](), list[int]()
    with config.override(compile=True):
        wanted = trained(*made(), x)
    model, optimizer = made()

    def handler(number: int, frame: Any) -> None:
        busy.append(1)
        seen.append(sum(float(p.abs().sum()) for p in model.state_dict().values()))
        busy.clear()

    owner, name = place
    inner = getattr(owner, name)

    def send() -> None:
        if not busy:  # the handler comes here, too
            signal.raise_signal(signal.SIGUSR1)

    def signalled(*args: Any) -> Any:
        send()
        found = inner(*args)
        send()
        return found

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        monkeypatch.setattr(owner, name, signalled)
        with config.override(compile=True):
            found = trained(model, optimizer, x)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen
    for y, z in zip(found, wanted, strict=True):
        np.testing.assert_allclose(y, z, 1e-5, 1e-6)
