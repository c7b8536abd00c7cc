"""A mixture of experts learns eight functions, where one layer of the same cost learns none.

Inputs are of eight kinds, each with its own function. Prints the mean squared errors of one
feed-forward layer and of eight experts of the same size, one of which processes each input (a
constant would get 1.0), and the balance loss of the experts. On 2 cores: 5 s.
"""

from __future__ import annotations

from collections.abc import Sequence

from common import options

import weft as wf
from weft import nn
from weft.nn import functional as F

KINDS, FEATURES, HIDDEN, BATCH = 8, 16, 16, 512


class Functions:
    """A center and a matrix for each kind: inputs lie around the center; the matrix maps them."""

    def __init__(self) -> None:
        self.centers = 2 * wf.randn(KINDS, FEATURES)
        self.matrices = wf.randn(KINDS, FEATURES, FEATURES) / FEATURES**0.5

    def draw(self, count: int) -> tuple[wf.Tensor, wf.Tensor]:
        """Inputs and targets, (count, FEATURES) each."""
        kinds = wf.randint(0, KINDS, (count,))
        noise = wf.randn(count, FEATURES)
        made = wf.einsum("nf,nfg->ng", noise, self.matrices[kinds])
        return self.centers[kinds] + noise, made


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train both; returns the errors of the single layer and of the experts on new inputs."""
    chosen = options(__doc__, steps=600).parse_args(arguments)
    wf.manual_seed(0)
    functions = Functions()
    single = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, FEATURES))
    experts = nn.MixtureOfExperts(FEATURES, HIDDEN, KINDS, top_k=1, capacity_factor=1.5)
    both = [*single.parameters(), *experts.parameters()]
    optimizer = wf.optim.Adam(both, lr=1e-2)
    for step in range(1, chosen.steps + 1):
        x, y = functions.draw(BATCH)
        found = experts(x)
        loss = F.mse_loss(single(x), y) + F.mse_loss(found.output, y)
        loss = loss + 0.02 * found.balance_loss + 0.001 * found.z_loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}  dropped {found.dropped.item()}")
    experts.eval()
    with wf.no_grad():
        x, y = functions.draw(4096)
        found = experts(x)
        errors = F.mse_loss(single(x), y).item(), F.mse_loss(found.output, y).item()
    print(f"error of one layer {errors[0]:.3f}")
    print(f"error of experts {errors[1]:.3f}")
    print(f"balance loss {found.balance_loss.item():.2f} (1 is even)")
    return errors


if __name__ == "__main__":
    main()
