"""PyTorch's matrix products, one turn at a time: `bench.matmul` starts this."""

from __future__ import annotations

from bench.single import serve


def prepared(torch, kind, m, k, n, turn_x, turn_y, dtype):
    """A function that computes one product of operands that may lie transposed."""
    real = getattr(torch, dtype)
    x = torch.rand(k, m).to(real).t() if turn_x else torch.rand(m, k).to(real)
    y = torch.rand(n, k).to(real).t() if turn_y else torch.rand(k, n).to(real)
    out = torch.empty(m, n, dtype=real)
    return lambda: torch.mm(x, y, out=out)


if __name__ == "__main__":
    serve(prepared)
