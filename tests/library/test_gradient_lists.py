"""Gradients in lists of kernels read what the calls have computed, and compute none of it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernel_counts import counted
from test_changing_sizes import stitched

import weft as wf
from weft import nn
from weft.nn import functional as F

HEAVY = ("flash_attention", "head_attention", "lstm_sequence")


def _attended(x: wf.Tensor) -> wf.Tensor:
    q, k, v = x.view(8, 40, 4, 48).transpose(1, 2).split(16, dim=-1)
    return F.scaled_dot_product_attention(q, k, v)


def _model(kind: str) -> tuple[Callable[[wf.Tensor], Any], wf.Tensor]:
    x = wf.randn(8, 40, 64)
    if kind == "sdpa":
        return _attended, wf.randn(8, 40, 192)
    if kind == "mha":
        module = nn.MultiheadAttention(64, 4, batch_first=True)
        return lambda x: module(x, x, x, need_weights=False)[0], x
    lstm = nn.LSTM(64, 32, batch_first=True)
    return lambda x: lstm(x)[0], x


@pytest.mark.parametrize("kind", ["sdpa", "mha", "lstm"])
def test_a_backward_pass_runs_no_forward_kernel_again(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stitched():
        wf.manual_seed(0)
        model, x = _model(kind)
        x.requires_grad_()
        counts = counted(monkeypatch)
        with wf.no_grad():
            model(x).sum().item()
        forward = {op: counts[op] for op in HEAVY if counts[op]}
        counts.clear()
        model(x).sum().backward()
        assert x.grad is not None
        x.grad.sum().item()
    assert forward and {op: counts[op] for op in forward} == forward
