"""dynamic_decode: a loop over a decoder's steps, until all sequences are finished."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from weft.errors import ArgumentError, TreeError
from weft.tf1.control.loop import while_loop
from weft.tf1.control.tensor_array import TensorArray
from weft.tf1.creation import fill, zeros_like
from weft.tf1.elementwise.arithmetic import logical_not, logical_or
from weft.tf1.framework.convert import constant, convert_to_tensor
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import fail
from weft.tf1.framework.structure import map_structure, outline
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.slicing import where
from weft.tf1.nn.raw_rnn import advanced
from weft.tf1.reduction import reduce_all
from weft.tf1.shaping.arrangement import shape, transpose
from weft.tf1.variable.variable_scope import variable_scope

__all__ = ["Decoder", "dynamic_decode"]


class Decoder:
    """The interface of `dynamic_decode`; subclasses define these properties and methods."""

    @property
    def batch_size(self) -> Any:
        """The number of sequences."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """Sizes of a step's outputs without the batch axis, in their structure."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """Element types of a step's outputs, in their structure."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether `step` reports all finished sequences, not only the newly finished ones."""
        return False

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Which sequences are finished initially, the first inputs, the initial state."""
        raise NotImplementedError

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """One step: outputs, the next state, the next inputs, which sequences are finished."""
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """Outputs and state after all steps, [time, batch, ...]."""
        raise NotImplementedError


def dynamic_decode(
    decoder: Decoder, output_time_major: bool = False, impute_finished: bool = False,
    maximum_iterations: Any = None, parallel_iterations: int = 32, swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Tensor]:  # fmt: skip
    """Run a decoder until all sequences are finished.

    Args:
        output_time_major: outputs are [time, batch, ...] instead of [batch, time, ...].
        impute_finished: finished sequences output zeros and keep their state.
        maximum_iterations: the maximum number of steps. If the end depends on computed values,
            as in inference, outputs have that many steps, with zeros after the last one; without
            it, the loop runs twice, first to count the steps.
        parallel_iterations, swap_memory: accepted.

    Returns:
        Outputs, the final state, and the lengths of the sequences, int32.

    Raises:
        ArgumentError: `decoder` is not a `Decoder`, or the maximum is not a scalar.
        TreeError: a step's outputs have another structure than the previous ones.
        GraphError: the number of steps is not bounded.
    """
    del parallel_iterations, swap_memory
    if not isinstance(decoder, Decoder):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise fail(ArgumentError, f"dynamic_decode: expected a Decoder, got {decoder!r}")
    with variable_scope(scope, "decoder"):
        most = None
        if maximum_iterations is not None:
            most = convert_to_tensor(maximum_iterations, dtype=int32)
            if most.shape.ndims not in (0, None):
                raise fail(
                    ArgumentError, f"dynamic_decode: maximum_iterations: expected a scalar: {most}"
                )
        finished, inputs, state = decoder.initialize()
        if most is not None:
            finished = logical_or(finished, most <= 0)
        body = _Body(decoder, impute_finished)
        arrays = map_structure(lambda d: TensorArray(d, 0, True), decoder.output_dtype)
        lengths = zeros_like(convert_to_tensor(finished), dtype=int32)
        found = while_loop(
            lambda *now: logical_not(reduce_all(now[4])), body,
            (constant(0, int32), arrays, state, inputs, finished, lengths),
            maximum_iterations=maximum_iterations,
        )  # fmt: skip
        outputs, state = map_structure(lambda a: a.stack(), found[1]), found[2]
        with contextlib.suppress(NotImplementedError):
            outputs, state = decoder.finalize(outputs, state, found[5])
        if not output_time_major:
            outputs = map_structure(_batch_major, outputs)
        return outputs, state, found[5]


class _Body:
    """One iteration: time, outputs so far, state, inputs, finished flags, and lengths."""

    def __init__(self, decoder: Decoder, impute: bool) -> None:
        self.decoder = decoder
        self.impute = impute

    def __call__(
        self, time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any
    ) -> tuple[Any, ...]:
        outputs, after, more, done = self.decoder.step(time, inputs, state)
        self._check(("state", "outputs", "inputs"), (state, arrays, inputs), (after, outputs, more))
        if not self.decoder.tracks_own_finished:
            done = logical_or(done, finished)
        lengths = where(finished, lengths, fill(shape(lengths), time + 1))
        if self.impute:
            outputs = map_structure(lambda y: where(finished, zeros_like(y), y), outputs)
            after = map_structure(lambda new, old: advanced(finished, old, new), after, state)
        arrays = map_structure(lambda a, y: a.write(time, y), arrays, outputs)
        return time + 1, arrays, after, more, done, lengths

    def _check(self, names: Sequence[str], before: Sequence[Any], after: Sequence[Any]) -> None:
        for name, old, new in zip(names, before, after, strict=True):
            if outline(old) != outline(new):
                raise fail(
                    TreeError,
                    f"dynamic_decode: expected a step that gives {name} in the structure"
                    f"\n  {outline(old)}, got\n  {outline(new)}\n",
                )


def _batch_major(x: Any) -> Any:
    """Batch and time axes swapped."""
    if isinstance(x, TensorArray) or x.shape.ndims is None or x.shape.ndims < 2:
        return x
    return transpose(x, [1, 0, *range(2, x.shape.ndims)])
