"""Activation checkpointing: parts of a model computed again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

from weft.errors import WeftError
from weft.func import checkpoint as again

__all__ = ["checkpoint", "checkpoint_sequential", "set_checkpoint_early_stop"]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, of which only the arguments are kept for the backward pass.

    Values, gradients and random numbers are the same. (Chen et al., "Training Deep
    Nets with Sublinear Memory Cost", 2016.)

    Args:
        use_reentrant: taken as PyTorch takes it, of no effect: there is one way.
        preserve_rng_state: whether dropout draws the same again; it always does.
        determinism_check: `"default"` or `"none"`: there is nothing to check, as the function runs
            once, and what it has computed is computed again.

    Raises:
        WeftError: `preserve_rng_state` is False, or there is no such check.
        TracerError: the function looks at the value of an argument.

    >>> import weft as wf
    >>> x = wf.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(wf.exp, x, use_reentrant=False).sum().backward()
    >>> x.grad.allclose(x.exp())
    True
    """
    if not preserve_rng_state:
        raise WeftError("checkpoint: random numbers are the same again; leave preserve_rng_state")
    if determinism_check not in ("default", "none"):
        raise WeftError(
            f"checkpoint: expected determinism_check 'default' or 'none', got {determinism_check!r}"
        )
    return again(function)(*args, **kwargs)


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Generator[None, None, None]:
    """Taken as PyTorch takes it, of no effect: only what gradients need is computed again.

    >>> import weft as wf
    >>> with set_checkpoint_early_stop(False):
    ...     checkpoint(wf.exp, wf.zeros(1))
    tensor([1.])
    """
    del enable
    yield


def checkpoint_sequential(
    functions: Iterable[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Functions one after another, in so many segments; all but the last are checkpointed.

    Args:
        functions: an `nn.Sequential`, or functions in order.
        segments: into how many runs of nearly equal length they are cut.

    Raises:
        WeftError: there are not as many functions as segments.

    >>> import weft as wf
    >>> from weft import nn
    >>> layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> checkpoint_sequential(layers, 2, wf.ones(3, 4)).shape
    (3, 2)
    """
    layers = list(functions)
    if not 1 <= segments <= len(layers):
        raise WeftError(
            f"checkpoint_sequential: {segments} segments of {len(layers)} functions; "
            "ask for between one and as many as there are functions"
        )

    def run(first: int, end: int) -> Callable[[Any], Any]:
        def part(x: Any) -> Any:
            for layer in layers[first:end]:
                x = layer(x)
            return x

        return part

    size = len(layers) // segments
    last = size * (segments - 1)
    for first in range(0, last, size):
        input = checkpoint(
            run(first, first + size),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return run(last, len(layers))(input)
