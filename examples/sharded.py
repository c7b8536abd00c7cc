"""gpt.py with one model sharded over ranks: `weft launch -n 4 examples/sharded.py --tp 2`.

Ranks form a 2D mesh: tensor parallel along one dimension (`--tp`); along the other, the batch,
parameters, gradients and optimizer state are sharded. It also runs as one process. The numbered
lines are those that several processes need.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from common import VOCABULARY, load_source, options, windows
from gpt import CONTEXT, bits

import weft as wf
import weft.distributed as dist
from weft import models
from weft.distributed.fsdp import fully_shard
from weft.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

BATCH = 16
PLAN = {"blocks.*.up": ColwiseParallel(), "blocks.*.down": RowwiseParallel()}


def divided(model: models.GPT, mesh: dist.DeviceMesh) -> models.GPT:
    """The model; each rank keeps its shard."""
    parallelize_module(model, mesh["tp"], PLAN)
    for block in model.blocks:
        fully_shard(block, mesh=mesh["dp"])
    return fully_shard(model, mesh=mesh["dp"])


def main(arguments: Sequence[str] | None = None) -> float:
    """Train; returns the loss of the last batch."""
    parser = options(__doc__, 200)
    parser.add_argument("--tp", type=int, default=1, help="ranks that divide a layer's work")
    given = parser.parse_args(arguments)
    dist.init_process_group()  # 1
    shape = dist.get_world_size() // given.tp, given.tp
    mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))  # 2
    wf.manual_seed(0)
    codes = load_source()
    model = divided(models.GPT(VOCABULARY, CONTEXT, layers=3, heads=4, width=128), mesh)  # 3
    optimizer = wf.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    part, parts, loss = mesh.get_local_rank("dp"), shape[0], 0.0
    for step in range(1, given.steps + 1):
        own = windows(codes, BATCH, CONTEXT + 1)[part::parts]  # 4
        mean = bits(model, own)
        mean.backward()
        wf.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0 or step == given.steps:
            loss = mean.item()
            print(f"step {step:4}  {loss:.2f} bits per character")
    kept = sum(p.numel() for p in model.parameters())
    print(f"{kept} parameters on this rank")
    dist.destroy_process_group()
    return loss


if __name__ == "__main__":
    main(sys.argv[1:])
