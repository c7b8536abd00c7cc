"""Recurrent cells: one step of a recurrent network, with its variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from weft.documentation import arguments_of
from weft.errors import ArgumentError
from weft.ops.sequence import cell_equation
from weft.tf1.creation import zeros
from weft.tf1.elementwise.arithmetic import matmul, sigmoid, tanh
from weft.tf1.elementwise.clip import clip_by_value
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import fail
from weft.tf1.framework.option import ANY, only
from weft.tf1.framework.structure import flatten, map_structure
from weft.tf1.nn.activation import bias_add
from weft.tf1.nn.normalization import dropout
from weft.tf1.shaping.arrangement import concat, split
from weft.tf1.variable.initializer import constant_initializer, zeros_initializer
from weft.tf1.variable.variable_scope import get_variable, variable_scope

__all__ = [
    "BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell", "LSTMCell",
    "LSTMStateTuple", "MultiRNNCell", "RNNCell", "ResidualWrapper",
]  # fmt: skip

Function = Callable[..., Any]


class RNNCell:
    """A step of a recurrent network; subclasses define `state_size`, `output_size` and `call`.

    `cell(inputs, state)` returns the output and the next state. Variables that `build` or `call`
    get by `get_variable` are created once, in a scope of the cell's name.

    Args:
        trainable: whether training changes its variables.
        name: of its scope; by default the class's, made unique.
        dtype: of its variables; that of the first inputs by default.
        others: further options of TensorFlow's, which change nothing.
    """

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None,
        _reuse: bool | None = None, **others: Any,
    ) -> None:  # fmt: skip
        only(type(self).__name__, others, dynamic=ANY, activity_regularizer=None)
        self._trainable = trainable
        self._name = name
        self._dtype = dtype
        self._reuse = _reuse
        self._scope: Any = None

    @property
    def state_size(self) -> Any:
        """Sizes of the state, nested as it is."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """Size of the output."""
        raise NotImplementedError

    def build(self, inputs_shape: Any) -> None:
        """Create the variables, for inputs of this shape."""

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: the output and the next state."""
        raise NotImplementedError

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step: the output and the next state."""
        first = self._scope is None
        named = (scope if scope is not None else self._name) if first else self._scope
        reuse = self._reuse if first else True
        title = _snake(type(self).__name__)
        getter = None if self._trainable else _fixed
        with variable_scope(named, title, reuse=reuse, custom_getter=getter) as own:
            if first:
                self._scope = own
                self._build(inputs)
            return self.call(inputs, state)

    def _build(self, inputs: Any) -> None:
        """Create the variables, by default in the type of the inputs."""
        like = convert_to_tensor(flatten(inputs)[0])
        if self._dtype is None and like.dtype.is_floating:
            self._dtype = like.dtype.base_dtype
        self.build(like.shape)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        return map_structure(lambda n: zeros(_dims(batch_size, n), dtype), self.state_size)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None):
        """A state of zeros."""
        del inputs
        return self.zero_state(batch_size, dtype)


def _fixed(getter: Function, *args: Any, **options: Any) -> Any:
    """A variable that is not trained."""
    return getter(*args, **{**options, "trainable": False})


def _dims(batch_size: Any, size: Any) -> Any:
    sizes = size if isinstance(size, list | tuple) else [size]
    return [batch_size, *sizes]


def _snake(name: str) -> str:
    inner = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", inner).lower()


class _UnitsCell(RNNCell):
    """A cell whose output is its state."""

    _units: int

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self._units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._units


@arguments_of(RNNCell)
class BasicRNNCell(_UnitsCell):
    """`output = state = activation(concat(inputs, state) @ kernel + bias)`.

    Args:
        num_units: the width of the state.
        activation: of the output; tanh by default.
        reuse: whether to share the variables of an earlier cell of this name.
    """

    def __init__(
        self, num_units: int, activation: Function | None = None, reuse: bool | None = None,
        name: str | None = None, dtype: Any = None, **others: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **others)
        self._units = num_units
        self._activation = activation or tanh

    def build(self, inputs_shape: Any) -> None:
        """Create kernel and bias."""
        rows = _depth(inputs_shape) + self._units
        self._kernel = get_variable("kernel", [rows, self._units], self._dtype)
        self._bias = get_variable(
            "bias", [self._units], self._dtype, initializer=zeros_initializer()
        )

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        output = self._activation(_affine([inputs, state], self._kernel, self._bias))
        return output, output


@arguments_of(RNNCell)
class GRUCell(_UnitsCell):
    """A gated recurrent unit: r and u are gates, c the candidate, `u * state + (1 - u) * c`.

    Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder" (2014), with the reset
    gate before the matmul, as in TensorFlow.

    Args:
        num_units: the width of the state.
        activation: of the candidate; tanh by default.
        kernel_initializer: initial values of the kernels.
        bias_initializer: initial values of the biases; by default 1 for gates, 0 for the candidate.
        reuse: whether to share the variables of an earlier cell of this name.
    """

    def __init__(
        self, num_units: int, activation: Function | None = None, reuse: bool | None = None,
        kernel_initializer: Any = None, bias_initializer: Any = None, name: str | None = None,
        dtype: Any = None, **others: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **others)
        self._units = num_units
        self._activation = activation or tanh
        self._initializers = kernel_initializer, bias_initializer

    def build(self, inputs_shape: Any) -> None:
        """Create kernels and biases of the gates and of the candidate."""
        rows, kernel, bias = _depth(inputs_shape) + self._units, *self._initializers
        gates = bias or constant_initializer(1.0)
        rest = bias or zeros_initializer()
        n, wide = self._units, 2 * self._units
        self._gate_kernel = get_variable(
            "gates/kernel", [rows, wide], self._dtype, initializer=kernel
        )
        self._gate_bias = get_variable("gates/bias", [wide], self._dtype, initializer=gates)
        self._kernel = get_variable("candidate/kernel", [rows, n], self._dtype, initializer=kernel)
        self._bias = get_variable("candidate/bias", [n], self._dtype, initializer=rest)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        gates = sigmoid(_affine([inputs, state], self._gate_kernel, self._gate_bias))
        r, u = split(gates, 2, 1)
        c = self._activation(_affine([inputs, r * state], self._kernel, self._bias))
        new = cell_equation.mixed(u, state, c)
        return new, new


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM: cell and output.

    Args:
        c: the cell.
        h: the output.
    """

    c: Any
    h: Any


@arguments_of(RNNCell)
class LSTMCell(RNNCell):
    """Long short-term memory, with optional peepholes and projection.

    Args:
        num_units: the width of the cell.
        use_peepholes: gates see the cell (Sak et al., 2014).
        cell_clip: the cell is clipped to this magnitude.
        initializer: of kernels.
        num_proj: the width of the output, a projection of the cell's output.
        proj_clip: the output is clipped to this magnitude.
        num_unit_shards, num_proj_shards: accepted for old programs.
        forget_bias: added to the forget gate.
        state_is_tuple: the state is an `LSTMStateTuple`; else both are concatenated.
        activation: of the new values and of the cell; tanh by default.
        reuse: whether to share the variables of an earlier cell of this name.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None,
        initializer: Any = None, num_proj: int | None = None, proj_clip: float | None = None,
        num_unit_shards: Any = None, num_proj_shards: Any = None, forget_bias: float = 1.0,
        state_is_tuple: bool = True, activation: Function | None = None,
        reuse: bool | None = None, name: str | None = None, dtype: Any = None, **others: Any,
    ) -> None:  # fmt: skip
        del num_unit_shards, num_proj_shards
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **others)
        self._units, self._projected = num_units, num_proj
        self._peepholes, self._initializer = use_peepholes, initializer
        self._clips = cell_clip, proj_clip
        self._forget_bias, self._tuple = forget_bias, state_is_tuple
        self._activation = activation or tanh

    @property
    def state_size(self) -> Any:
        """Sizes of cell and output, or their sum."""
        h = self.output_size
        return LSTMStateTuple(self._units, h) if self._tuple else self._units + h

    @property
    def output_size(self) -> int:
        """The width of the output."""
        return self._units if self._projected is None else self._projected

    def build(self, inputs_shape: Any) -> None:
        """Create kernel and bias, peepholes and projection."""
        n, dtype, start = self._units, self._dtype, self._initializer
        rows, wide = _depth(inputs_shape) + self.output_size, 4 * n
        self._kernel = get_variable("kernel", [rows, wide], dtype, initializer=start)
        self._bias = get_variable("bias", [wide], dtype, initializer=zeros_initializer())
        names = ("w_f_diag", "w_i_diag", "w_o_diag") if self._peepholes else ()
        self._diagonals = [get_variable(x, [n], dtype, initializer=start) for x in names]
        if self._projected is not None:
            self._projection = get_variable(
                "projection/kernel", [n, self._projected], dtype, initializer=start
            )

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, h = state if self._tuple else split(state, [self._units, self.output_size], 1)
        h, c = cell_equation.lstm(
            split(_affine([inputs, h], self._kernel, self._bias), 4, 1), c, "info", sigmoid,
            self._activation, self._forget_bias, self._diagonals,
            partial(_clipped, limit=self._clips[0]),
        )  # fmt: skip
        if self._projected is not None:
            h = _clipped(matmul(h, self._projection), self._clips[1])
        return h, LSTMStateTuple(c, h) if self._tuple else concat([c, h], 1)


@arguments_of(LSTMCell)
class BasicLSTMCell(LSTMCell):
    """Long short-term memory: `LSTMCell` without peepholes and projection."""

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, state_is_tuple: bool = True,
        activation: Function | None = None, reuse: bool | None = None, name: str | None = None,
        dtype: Any = None, **others: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            num_units, forget_bias=forget_bias, state_is_tuple=state_is_tuple,
            activation=activation, reuse=reuse, name=name, dtype=dtype, **others,
        )  # fmt: skip


class MultiRNNCell(RNNCell):
    """Stacked cells: each takes the output of the one below.

    Args:
        cells: from the first to the last.
        state_is_tuple: the state is a tuple of theirs; else all are concatenated.

    Raises:
        ArgumentError: there are no cells.
    """

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise fail(ArgumentError, "MultiRNNCell: expected at least one cell")
        self._cells, self._tuple = list(cells), state_is_tuple

    @property
    def state_size(self) -> Any:
        """The cells' sizes, or their sum."""
        sizes = tuple([cell.state_size for cell in self._cells])
        return sizes if self._tuple else sum(flatten(sizes))

    @property
    def output_size(self) -> Any:
        """The last cell's."""
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        if not self._tuple:
            return super().zero_state(batch_size, dtype)
        return tuple([cell.zero_state(batch_size, dtype) for cell in self._cells])

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        sizes = [cell.state_size for cell in self._cells]
        states = state if self._tuple else split(state, sizes, 1)
        states_after: list[Any] = []
        for i, (cell, own) in enumerate(zip(self._cells, states, strict=True)):
            with variable_scope(f"cell_{i}"):
                inputs, new = cell(inputs, own)
            states_after.append(new)
        return inputs, tuple(states_after) if self._tuple else concat(states_after, 1)


class WrapperCell(RNNCell):
    """A cell that wraps another one, without variables of its own."""

    def __init__(self, cell: RNNCell, reuse: bool | None = None) -> None:
        super().__init__(_reuse=reuse)
        self._cell = cell

    @property
    def state_size(self) -> Any:
        """The wrapped cell's."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """The wrapped cell's."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The wrapped cell's."""
        return self._cell.zero_state(batch_size, dtype)


class DropoutWrapper(WrapperCell):
    """A cell with dropout of inputs, outputs and states, drawn anew at each step.

    Args:
        cell: the wrapped cell.
        input_keep_prob, output_keep_prob, state_keep_prob: fractions of the elements that are kept,
            numbers or tensors.
        variational_recurrent: not supported.
        input_size, dtype: accepted for old programs.
        seed: of the random numbers.
    """

    def __init__(
        self, cell: RNNCell, input_keep_prob: Any = 1.0, output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0, variational_recurrent: bool = False, input_size: Any = None,
        dtype: Any = None, seed: int | None = None,
    ) -> None:  # fmt: skip
        del input_size, dtype
        super().__init__(cell)
        if variational_recurrent:
            raise fail(ArgumentError, "DropoutWrapper: variational_recurrent is not supported")
        self._keep, self._seed = (input_keep_prob, output_keep_prob, state_keep_prob), seed

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step."""
        output, new = self._cell(self._dropped(inputs, self._keep[0]), state, scope)
        if self._keep[2] is not None and not _keeps_all(self._keep[2]):
            if isinstance(new, LSTMStateTuple):  # the cell part is not dropped
                new = LSTMStateTuple(new.c, self._dropped(new.h, self._keep[2]))
            else:
                new = map_structure(lambda x: self._dropped(x, self._keep[2]), new)
        return self._dropped(output, self._keep[1]), new

    def _dropped(self, x: Any, keep: Any) -> Any:
        return x if _keeps_all(keep) else dropout(x, keep, seed=self._seed)


def _keeps_all(keep: Any) -> bool:
    return isinstance(keep, int | float) and keep >= 1


class ResidualWrapper(WrapperCell):
    """A residual cell: adds inputs to outputs, or applies `residual_fn(inputs, outputs)`.

    Args:
        cell: the wrapped cell.
        residual_fn: used instead of a sum.
    """

    def __init__(self, cell: RNNCell, residual_fn: Function | None = None) -> None:
        super().__init__(cell)
        self._residual = residual_fn

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step."""
        output, new = self._cell(inputs, state, scope)
        if self._residual is not None:
            return self._residual(inputs, output), new
        return map_structure(lambda x, y: x + y, inputs, output), new


class DeviceWrapper(WrapperCell):
    """A cell on a device; there is only one.

    Args:
        cell: the wrapped cell.
        device: accepted for old programs.
    """

    def __init__(self, cell: RNNCell, device: Any) -> None:
        del device
        super().__init__(cell)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step."""
        return self._cell(inputs, state, scope)


def _affine(parts: Sequence[Any], kernel: Any, bias: Any) -> Any:
    return bias_add(matmul(concat(list(parts), 1), kernel), bias)


def _clipped(x: Any, limit: float | None) -> Any:
    return x if limit is None else clip_by_value(x, -limit, limit)


def _depth(shape: Any) -> int:
    depth = shape.as_list()[-1]
    if depth is None:
        raise fail(ArgumentError, f"expected inputs whose last dimension is known, got {shape}")
    return depth
