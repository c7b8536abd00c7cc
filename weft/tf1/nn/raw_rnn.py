"""raw_rnn: a cell in a loop, controlled by a user function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import ArgumentError, TreeError
from weft.tf1.control.loop import while_loop
from weft.tf1.control.tensor_array import TensorArray
from weft.tf1.creation import zeros
from weft.tf1.elementwise.arithmetic import logical_not, logical_or
from weft.tf1.framework.convert import constant, convert_to_tensor
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import fail
from weft.tf1.framework.structure import flatten, map_structure, outline
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.slicing import where
from weft.tf1.reduction import reduce_all
from weft.tf1.shaping.arrangement import concat, shape
from weft.tf1.variable.variable_scope import variable_scope


def raw_rnn(
    cell: Any, loop_fn: Callable[..., Any], parallel_iterations: int | None = None,
    swap_memory: bool = False, scope: Any = None, maximum_iterations: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Run a cell on inputs from a function, until the function says that all rows are finished.

    `loop_fn(time, cell_output, cell_state, loop_state)` returns `(finished, next_input,
    next_cell_state, emit_output, next_loop_state)`. The first call has time 0 and `None` for the
    rest; it returns the first input and state, and as `emit_output` an example of one row's output
    (`None`: like the cell's output). Finished rows emit zeros and keep their state. The loop ends
    when all rows are finished.

    Args:
        parallel_iterations, swap_memory: accepted.
        maximum_iterations: the maximum number of iterations; required if `finished` depends on
            computed values. TensorFlow does not have it.

    Returns:
        The emitted outputs, as tensor arrays in the structure of `emit_output`; the last cell
        state; the last loop state.

    Raises:
        ArgumentError: `loop_fn` does not return five values.
        GraphError: the number of iterations is not bounded.

    >>> import weft.tf1 as tf
    >>> lengths = tf.constant([2, 1])
    >>> def loop_fn(time, output, state, loop_state):
    ...     state = tf.zeros([2, 3]) if output is None else state
    ...     return time >= lengths, tf.ones([2, 1]), state, output, None
    >>> emitted, _, _ = tf.nn.raw_rnn(tf.nn.rnn_cell.GRUCell(3), loop_fn)
    >>> print(emitted.stack().shape)
    (2, 2, 3)
    """
    del parallel_iterations, swap_memory
    if not callable(loop_fn):
        raise fail(ArgumentError, f"raw_rnn: expected loop_fn to be a function, got {loop_fn!r}")
    with variable_scope(scope or "rnn"):
        start = constant(0, int32)
        finished, first, state, example, loop_state = _told(loop_fn(start, None, None, None))
        x = convert_to_tensor(flatten(first)[0])
        batch = shape(x)[:1]
        examples = _examples(example, cell, state)
        silence = map_structure(lambda e: zeros(concat([batch, shape(e)], 0), e.dtype), examples)
        arrays = map_structure(lambda e: _array(e, x.shape.as_list()[0]), examples)
        found = while_loop(
            lambda _, done, *__: logical_not(reduce_all(done)),
            _iteration(cell, loop_fn, examples, silence),
            (start, finished, first, arrays, state, 0 if loop_state is None else loop_state),
            maximum_iterations=maximum_iterations,
        )
        return found[3], found[4], None if loop_state is None else found[5]


def _examples(example: Any, cell: Any, state: Any) -> Any:
    """One row's output, as tensors; like the cell's unless `loop_fn` gave an example."""
    if example is None:
        dtype = flatten(state)[0].dtype.base_dtype
        example = map_structure(lambda n: zeros(_sizes(n), dtype), cell.output_size)
    return map_structure(convert_to_tensor, example)


def _iteration(
    cell: Any, loop_fn: Callable[..., Any], examples: Any, silence: Any
) -> Callable[..., tuple[Any, ...]]:
    """The body of the loop.

    Args:
        examples: one row's output.
        silence: the output of finished rows: zeros.
    """

    def body(
        time: Any, done: Any, x: Any, emitted: Any, state: Any, loop_state: Any
    ) -> tuple[Any, ...]:
        output, found = cell(x, state)
        told = _told(loop_fn(time + 1, output, found, loop_state))
        now, x, after, emit, more = told
        _same("next_cell_state", state, after)
        _same("emit_output", examples, emit)
        emit = map_structure(lambda z, y: advanced(done, z, y), silence, emit)
        after = map_structure(lambda a, b: advanced(done, a, b), state, after)
        emitted = map_structure(lambda a, y: a.write(time, y), emitted, emit)
        more = loop_state if more is None else more
        return time + 1, logical_or(done, now), x, emitted, after, more

    return body


def _told(found: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The five results of `loop_fn`, checked."""
    if not isinstance(found, list | tuple) or len(found) != 5:
        text = "(finished, next_input, next_cell_state, emit_output, next_loop_state)"
        raise fail(ArgumentError, f"raw_rnn: expected loop_fn to give {text}, got {found!r}")
    finished, *others = found
    return (convert_to_tensor(finished), *others)


def _sizes(size: Any) -> list[int]:
    return list(size) if isinstance(size, list | tuple) else [size]


def _array(example: Tensor, batch: int | None) -> TensorArray:
    """Outputs of all rows, each like an example."""
    dims = example.shape.as_list() if example.shape.ndims is not None else None
    known = None if dims is None else [batch, *dims]
    return TensorArray(example.dtype.base_dtype, 0, True, element_shape=known)


def _same(what: str, before: Any, after: Any) -> None:
    """Check that a result of `loop_fn` keeps its structure between iterations."""
    if outline(before) != outline(after):
        raise fail(
            TreeError,
            f"raw_rnn: expected {what} in the structure that it had, got\n  {outline(before)}\n"
            f"  {outline(after)}\n",
        )


def advanced(done: Tensor, old: Any, new: Any) -> Any:
    """The previous values for finished rows; scalars and arrays advance."""
    if isinstance(old, TensorArray) or old.shape.ndims == 0:
        return new
    return where(done, old, new)
