"""Layers of one function: activations, custom functions, masking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import weft.tf1 as tf
from weft.tf1.keras import activations, regularizers
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.storage.serialization import deserialized

__all__ = ["Activation", "ActivityRegularization", "Lambda", "Masking"]


class Activation(Layer):
    """An elementwise activation: a function or its name.

    Args:
        activation: the function, or its name.
    """

    def __init__(self, activation: Any, **options: Any) -> None:
        super().__init__(**options)
        self.supports_masking = True
        self.activation = activations.get(activation)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return self.activation(inputs)


class ActivityRegularization(Layer):
    """Adds a loss of its inputs: l1 * sum(abs(x)) + l2 * sum(x ** 2).

    Args:
        l1, l2: factors of the two terms.
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **options: Any) -> None:
        super().__init__(activity_regularizer=regularizers.L1L2(l1, l2), **options)
        self.supports_masking = True
        self.l1, self.l2 = l1, l2


class Lambda(Layer):
    """A custom function as a layer.

    Args:
        function: gets the inputs, and `arguments`.
        output_shape: accepted; shapes are inferred.
        mask: a mask, or a function of inputs and mask.
        arguments: further arguments by name.

    The configuration stores the function's name; `custom_objects` maps it to the function.
    """

    def __init__(
        self, function: Callable[..., Any], output_shape: Any = None, mask: Any = None,
        arguments: Mapping[str, Any] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        del output_shape
        super().__init__(**options)
        self.function = deserialized("function of a Lambda layer", {}, function)
        self.arguments = dict(arguments or {})
        self._mask = mask
        self.supports_masking = mask is not None

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """The outputs."""
        code = getattr(self.function, "__code__", None)
        takes = code is not None and "mask" in code.co_varnames[: code.co_argcount]
        return self.function(inputs, **self.arguments, **({"mask": mask} if takes else {}))

    def _fresh(self) -> Lambda:
        """The same function, which may have no name."""
        return type(self)(self.function, mask=self._mask, arguments=self.arguments)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The given mask, or the function's result; else none."""
        return self._mask(inputs, mask) if callable(self._mask) else self._mask


class Masking(Layer):
    """Masks steps whose features are all `mask_value`.

    Args:
        mask_value: of all features of a masked step.
    """

    def __init__(self, mask_value: float = 0.0, **options: Any) -> None:
        super().__init__(**options)
        self.supports_masking = True
        self.mask_value = mask_value

    def call(self, inputs: Any) -> Any:
        """The outputs: zeros for masked steps."""
        return inputs * tf.cast(self._kept(inputs, keepdims=True), inputs.dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of steps."""
        return self._kept(inputs)

    def _kept(self, inputs: Any, keepdims: bool = False) -> Any:
        return tf.reduce_any(tf.not_equal(inputs, self.mask_value), axis=-1, keepdims=keepdims)
