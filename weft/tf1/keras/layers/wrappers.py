"""Wrapper layers: TimeDistributed, Bidirectional."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.storage.network_config import layer_from

__all__ = ["Bidirectional", "TimeDistributed", "Wrapper"]

_MERGED: Final[dict[str | None, Callable[[Any, Any], Any]]] = {
    "concat": lambda x, y: tf.concat([x, y], -1), "sum": operator.add, "mul": operator.mul,
    "ave": lambda x, y: (x + y) / 2.0, None: lambda x, y: [x, y],
}  # fmt: skip
"""How the outputs of both directions are merged, by mode."""


class Wrapper(Layer):
    """Base class of wrappers.

    Args:
        layer: the wrapped layer, or its configuration.
    """

    def __init__(self, layer: Any, **options: Any) -> None:
        super().__init__(**options)
        self.layer: Any = layer_from(layer)
        if not isinstance(self.layer, Layer):
            raise fail(ArgumentError, f"{type(self).__name__}: expected a layer, got {layer!r}")


class TimeDistributed(Wrapper):
    """Applies a layer to each step of (batch, steps, ...)."""

    def __init__(self, layer: Any, **options: Any) -> None:
        super().__init__(layer, **options)
        self.supports_masking = True
        self.input_spec = InputSpec(min_ndim=3)

    def call(self, inputs: Any, training: Any = None) -> Any:
        """The outputs."""
        dims, now = inputs.shape.as_list(), tf.shape(inputs)
        sizes = [now[i] if n is None else n for i, n in enumerate(dims)]
        flat = tf.reshape(inputs, [-1, *sizes[2:]])
        flat.set_shape([None, *dims[2:]])
        y = self.layer(flat)
        rest, later = y.shape.as_list()[1:], tf.shape(y)
        behind = [later[i + 1] if n is None else n for i, n in enumerate(rest)]
        outputs = tf.reshape(y, [-1 if dims[1] is not None else sizes[0], sizes[1], *behind])
        outputs.set_shape([dims[0], dims[1], *rest])
        return outputs

    def checkpoint_weights(self) -> dict[str, Any]:
        """The weights by their names in weight files."""
        return {f"layer/{name}": v for name, v in self.layer.checkpoint_weights().items()}

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The inputs' mask."""
        return mask


class Bidirectional(Wrapper):
    """Runs a recurrent layer forwards, and a copy of it backwards.

    Args:
        layer: the recurrent layer.
        merge_mode: how outputs are merged: `"concat"`, `"sum"`, `"mul"`, `"ave"`; `None` returns
            both.
        backward_layer: runs backwards, instead of the copy.

    Raises:
        ArgumentError: the mode is unknown.
    """

    _unconfigured = ("backward_layer",)

    def __init__(
        self, layer: Any, merge_mode: str | None = "concat", backward_layer: Any = None,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(layer, **options)
        layer = self.layer
        if merge_mode not in _MERGED:
            modes = tuple(_MERGED)
            raise fail(
                ArgumentError, f"Bidirectional: expected merge_mode of {modes}, got {merge_mode!r}"
            )
        self.merge_mode = merge_mode
        config = layer.get_config()
        self.forward_layer: Any = type(layer).from_config(
            {**config, "name": f"forward_{layer.name}"}
        )
        self.backward_layer: Any = layer_from(backward_layer) or type(layer).from_config(
            {
                **config, "name": f"backward_{layer.name}",
                "go_backwards": not config.get("go_backwards", False),
            }
        )  # fmt: skip
        self.return_sequences, self.return_state = layer.return_sequences, layer.return_state
        self.stateful = layer.stateful
        self.supports_masking = True
        self.input_spec = layer.input_spec

    def _children(self) -> list[Any]:
        own = self.__dict__
        return [own[n] for n in ("forward_layer", "backward_layer") if n in own]

    def call(
        self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None
    ) -> Any:
        """The outputs, and the last states of both if requested."""
        options: dict[str, Any] = {"mask": mask, "training": training}
        states = nest.flatten(initial_state)
        half = len(states) // 2
        one: Any = self.forward_layer(inputs, **options, initial_state=states[:half] or None)
        two: Any = self.backward_layer(inputs, **options, initial_state=states[half:] or None)
        after: list[Any] = []
        if self.return_state:
            one, *first = one
            two, *second = two
            after = [*first, *second]
        if self.return_sequences:
            two = tf.reverse(two, [1])
        y = _MERGED[self.merge_mode](one, two)
        if not self.return_state:
            return y
        return [*(y if isinstance(y, list) else [y]), *after]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The inputs' mask, if the outputs have steps."""
        masks = nest.flatten(mask)
        own = masks[0] if masks and self.return_sequences else None
        return [own, own] if self.merge_mode is None else own

    def reset_states(self, states: Any = None) -> None:
        """Reset the states to zeros."""
        self.forward_layer.reset_states()
        self.backward_layer.reset_states()

    def checkpoint_weights(self) -> dict[str, Any]:
        """The weights by their names in weight files."""
        pairs = (("forward_layer", self.forward_layer), ("backward_layer", self.backward_layer))
        return {
            f"{name}/{n}": v for name, layer in pairs for n, v in layer.checkpoint_weights().items()
        }
