"""`tf.keras.layers`."""

from weft.tf1.keras.engine.input_layer import Input, InputLayer
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.layers.dense import Dense

__all__ = ["Dense", "Input", "InputLayer", "InputSpec", "Layer"]
