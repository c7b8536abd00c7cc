"""Activation checkpointing: parts of a model are recomputed in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, nullcontext
from typing import Any

from weft.eager.functions.random.generator import default_generator
from weft.eager.record.pending.state import trace
from weft.errors import TracerError, WeftError
from weft.func import checkpoint as again
from weft.utils.recomputation import Context, called_again

__all__ = ["checkpoint", "checkpoint_sequential", "set_checkpoint_early_stop"]


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Context, Context]] | None = None,
    determinism_check: str = "default", debug: bool = False, early_stop: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)`, of which only the arguments are kept for the backward pass.

    Values, gradients and random numbers are the same. (Chen et al., "Training Deep
    Nets with Sublinear Memory Cost", 2016.)

    The function is called once, and what it recorded is recomputed. A function that reads values
    cannot be recorded: it is called again in the backward pass, so in-place side effects, such as
    batch statistics, happen twice.

    Args:
        use_reentrant: accepted; the single implementation does what either variant can.
        preserve_rng_state: whether dropout draws the same numbers again; it always does.
        context_fn: gives two context managers: for the first call, and for the one in the backward
            pass, if any.
        determinism_check: `"default"` checks that a second call gives the same types; `"none"` does
            not.
        debug: accepted; errors always name the user's line.
        early_stop: accepted; only what gradients need is recomputed.

    Raises:
        WeftError: the check is unknown.
        ValueError: `context_fn` or `debug` with `use_reentrant=True`.
        GradientError: in the backward pass, if a second call gives another result.

    >>> import weft as wf
    >>> x = wf.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(wf.exp, x, use_reentrant=False).sum().backward()
    >>> x.grad.allclose(x.exp())
    True
    """
    del preserve_rng_state, early_stop
    if determinism_check not in ("default", "none"):
        raise WeftError(
            f"checkpoint: expected determinism_check 'default' or 'none', got {determinism_check!r}"
        )
    if use_reentrant and (context_fn is not None or debug):
        raise ValueError("checkpoint: context_fn and debug need use_reentrant=False")
    if context_fn is None:
        state = default_generator.get_state()
        try:
            return again(function)(*args, **kwargs)
        except TracerError:
            if trace.now.depth:  # the value is a tracer of an outer function
                raise
            default_generator.set_state(state)
    contexts = (nullcontext(), nullcontext()) if context_fn is None else context_fn()
    return called_again(function, args, kwargs, contexts, determinism_check == "default")


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Generator[None, None, None]:
    """Accepted, without effect: only what gradients need is recomputed.

    >>> import weft as wf
    >>> with set_checkpoint_early_stop(False):
    ...     checkpoint(wf.exp, wf.zeros(1))
    tensor([1.])
    """
    del enable
    yield


def checkpoint_sequential(
    functions: Iterable[Callable[..., Any]], segments: int, input: Any,
    use_reentrant: bool | None = None, preserve_rng_state: bool = True,
) -> Any:  # fmt: skip
    """Functions one after another, in segments; all but the last are checkpointed.

    Args:
        functions: an `nn.Sequential`, or functions in order.
        segments: the number of segments, which have nearly equal lengths.

    Raises:
        WeftError: there are fewer functions than segments.

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
