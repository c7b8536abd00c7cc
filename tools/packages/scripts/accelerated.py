"""accelerate: prepare, accumulate, clip, gather, save_state and load_state: `accelerated.py`."""

from __future__ import annotations

import sys

import accelerate
import torch
from shared import FOLDER, WEFT, begin, report


def main(steps: int) -> None:
    """A small network, with gradients of two batches each step."""
    accelerator = accelerate.Accelerator(gradient_accumulation_steps=2, cpu=True)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    network = begin(network, "accelerated")
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.5)
    x = torch.linspace(-1, 1, steps * 16 * 8).reshape(-1, 8)
    rows = torch.utils.data.TensorDataset(x, (3 * x).sin().sum(1, keepdim=True))
    loader = torch.utils.data.DataLoader(rows, batch_size=16)
    model, optimizer, loader, schedule = accelerator.prepare(network, optimizer, loader, schedule)
    folder = FOLDER / f"accelerated-{'weft' if WEFT else 'torch'}"
    losses: list[float] = []
    norms: list[float] = []
    for epoch in range(2):
        for inputs, targets in loader:
            with accelerator.accumulate(model), accelerator.autocast():
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norms.append(float(accelerator.clip_grad_norm_(model.parameters(), 0.5)))
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather_for_metrics(loss.detach()).mean().item())
        if epoch == 0:
            accelerator.save_state(str(folder))
            kept = [p.detach().clone() for p in model.parameters()]
    accelerator.load_state(str(folder))
    same = all(torch.equal(a, b) for a, b in zip(kept, model.parameters(), strict=True))
    rate = schedule.get_last_lr()[0]
    accelerator.save_model(model, str(folder / "model"))
    found = accelerator.unwrap_model(model)
    report(
        losses=losses, norms=norms, restored=same, rate=rate, kind=type(found).__name__,
        processes=accelerator.num_processes, reduced=accelerator.reduce(torch.ones(2)).tolist(),
    )  # fmt: skip
    accelerator.end_training()


if __name__ == "__main__":
    main(int(sys.argv[1]))
