"""`Layer`: the base class of layers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import weft.tf1 as tf
from weft.errors import ArgumentError, StateError
from weft.tf1.framework.assumed import outcomes
from weft.tf1.framework.graph import acts_in_order, fail, is_symbolic, name_scope
from weft.tf1.framework.tensor import OperatorNotAllowedInGraphError
from weft.tf1.keras import constraints, initializers, regularizers
from weft.tf1.keras.engine import call_context, nest, sessions
from weft.tf1.keras.engine.calls import Called
from weft.tf1.keras.engine.graph_state import graph_state, history_of, mask_of, set_mask
from weft.tf1.keras.engine.input_spec import InputSpec, check_inputs
from weft.tf1.keras.engine.node import Node
from weft.tf1.keras.engine.raw_history import find_history
from weft.tf1.keras.engine.settings import floatx
from weft.tf1.keras.storage.serialization import as_data, constructor_arguments
from weft.tf1.version import Behavior

_SHAPES = ("input_shape", "batch_input_shape", "input_dim", "input_length", "batch_size")
_SUPPLIED = frozenset({"mask", "training"})
"""Arguments of `call` that a layer fills in, if they are not given."""
OPTIONS = (*_SHAPES, "weights", "autocast", "dynamic", "activity_regularizer")


class Layer(Called):
    """A layer: `build` creates its weights, `call` computes.

    Args:
        trainable: whether training changes its weights.
        name: its name; derived from the class's name by default.
        dtype: the type of its weights.
        activity_regularizer: a loss of the outputs: a function or its name.
        input_shape, input_dim, input_length: of examples, for a model's first layer.
        batch_input_shape, batch_size: the same with the batch axis.
        weights: their initial values.
        options: those above after `dtype`, by name.

    Attributes:
        built: whether its weights exist.
        supports_masking: whether it propagates the masks of its inputs.
        input_spec: the requirements on its inputs.

    >>> import weft.tf1 as tf
    >>> class Scale(tf.keras.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.factor = self.add_weight("factor", [input_shape[-1]], initializer="ones")
    ...     def call(self, inputs):
    ...         return inputs * self.factor
    >>> with tf.Graph().as_default():
    ...     x = tf.keras.Input([3])
    ...     tf.keras.Model(x, Scale()(x)).predict([[1, 2, 3]], verbose=0).tolist()
    [[1.0, 2.0, 3.0]]
    """

    _unconfigured: ClassVar[tuple[str, ...]] = ()
    """Arguments that configurations leave out."""
    _casts: ClassVar[bool] = True
    """Whether inputs get the layer's type, in TensorFlow 2; a network leaves that to its layers."""
    needs_values: bool = False
    """Whether `call` asks for values of tensors: it can then not be part of a graph."""
    any_needs_values: ClassVar[bool] = False
    """Whether there is such a layer: models look for one before each batch."""

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, **options: Any
    ) -> None:
        super().__init__()
        unknown = sorted(options.keys() - {*OPTIONS})
        if unknown:
            raise fail(
                ArgumentError,
                f"{type(self).__name__}: expected as further options {list(OPTIONS)}, got "
                f"{unknown}",
            )
        self._graph_of_name = tf.get_default_graph()
        self._name = name or graph_state().unique_name(type(self).__name__)
        self.dtype = None if dtype is None else tf.as_dtype(dtype).name
        self.trainable = trainable
        self.built = False
        self.stateful = False
        self.supports_masking = False
        self.input_spec: InputSpec | list[InputSpec] | None = None
        self.activity_regularizer = regularizers.get(options.get("activity_regularizer"))
        self._batch_input_shape = _first_shape(options)
        self._first_weights = options.get("weights")
        self._autocast = bool(options.get("autocast", True)) and self._casts

    @property
    def first_shape(self) -> tuple[Any, ...] | None:
        """The shape of a model's inputs, if this is its first layer."""
        return self._batch_input_shape

    # -- what a subclass defines

    def build(self, input_shape: Any) -> None:
        """Create the weights for inputs of this shape."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs."""
        return inputs

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: the inputs' if the layer propagates it.

        Raises:
            StateError: there is a mask, and the layer does not support masking.
        """
        if self.supports_masking or not nest.tensors_in(mask):
            return mask
        raise fail(
            StateError,
            f"{self.name}: expected inputs without a mask, as the layer does not support masks; "
            "set self.supports_masking = True if it may hand it on",
        )

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs for inputs of this shape."""
        with tf.Graph().as_default():
            scratch = self._fresh()
            dtype = self.dtype or "float32"
            inputs = nest_shapes(input_shape, lambda s: tf.placeholder(dtype, s))
            return nest.shapes_of(scratch(inputs))

    def _fresh(self) -> Layer:
        """A layer with the same settings, for another graph."""
        return type(self).from_config(self.get_config())

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        if self._batch_input_shape is not None:
            config["batch_input_shape"] = self._batch_input_shape
        config["dtype"] = self.dtype
        attributes = vars(self)
        names = [n for n in constructor_arguments(type(self), Layer) if n not in self._unconfigured]
        return config | {n: as_data(attributes[n]) for n in names if n in attributes}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A layer from `get_config`."""
        return cls(**config)

    # -- calls

    @cached_property
    def _call_order(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.call).parameters)

    @cached_property
    def _call_arguments(self) -> frozenset[str]:
        return frozenset(self._call_order)

    @cached_property
    def _takes_training(self) -> bool:
        known = inspect.signature(self.call).parameters
        return "training" in known or any(p.kind is p.VAR_KEYWORD for p in known.values())

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs for tensors; the first call creates the weights."""
        inputs = nest.tensors(inputs)
        if Behavior.is_2 and self._autocast:
            inputs = nest.mapped(self._cast, inputs)
        tensors = nest.tensors_in([inputs, args, kwargs])
        if not call_context.is_inside():
            self.forget_losses()
            find_history([x for x in tensors if is_symbolic(x)])
        with name_scope(self._scope_name(), None, tensors):
            check_inputs(self, inputs)
            self._build_once(inputs)
            masks = nest.mapped(mask_of, inputs)
            if args and not _SUPPLIED.isdisjoint(named := self._call_order[1 : len(args) + 1]):
                args, kwargs = (), dict(**dict(zip(named, args, strict=True)), **kwargs)
            self._fill_in(kwargs, masks)
            with call_context.inside(self, kwargs.get("training")):
                if not self._takes_training:  # it is for the layers inside
                    kwargs.pop("training", None)
                outputs = self._called(inputs, args, kwargs)
            outputs = _distinct(outputs, tensors)
            self._regularize_activity(outputs)
            self._set_masks(inputs, outputs, masks)
        if not call_context.is_inside() and any(history_of(x) for x in tensors):
            Node(self, inputs, args, kwargs, outputs)
        return outputs

    def _called(self, inputs: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """What `call` returns; if its branches depend on tensors, the outputs of one branch."""
        try:
            return self.call(inputs, *args, **kwargs)
        except OperatorNotAllowedInGraphError:
            eager = tf.get_default_graph().at_once
            if eager is None or eager.effects is not None:  # a traced function runs in Python then
                raise
            found = outcomes(lambda: self.call(inputs, *args, **kwargs))
            if not found:
                raise
            self.ask_for_values()
            return found[-1]

    def ask_for_values(self) -> None:
        """Let Python run the steps of models with this layer."""
        self.needs_values = Layer.any_needs_values = True

    def _cast(self, x: Any) -> Any:
        """An input of a floating type in the layer's type."""
        kind = tf.as_dtype(self.dtype or floatx())
        if not tf.is_tensor(x) or not x.dtype.is_floating or not kind.is_floating:
            return x
        return x if x.dtype.base_dtype is kind else tf.cast(x, kind)

    def _scope_name(self) -> str:
        return self.name

    def _fill_in(self, kwargs: dict[str, Any], masks: Any) -> None:
        """Pass masks and the learning phase to `call` if it takes them and the user gave none."""
        known = self._call_arguments
        if "mask" in known and kwargs.get("mask") is None and nest.tensors_in(masks):
            kwargs["mask"] = masks
        if "training" in known and kwargs.get("training") is None:
            kwargs["training"] = call_context.training()
            if kwargs["training"] is None and acts_in_order():
                kwargs["training"] = graph_state().fixed_phase == 1

    def _build_once(self, inputs: Any) -> None:
        if self.built:
            return
        leaves = nest.tensors_in(inputs)
        if self.dtype is None:
            floating = [x.dtype.base_dtype for x in leaves if x.dtype.is_floating]
            self.dtype = floating[0].name if floating else "float32"
        with tf.control_dependencies(None):
            self.build(nest.shapes_of(inputs) if leaves else None)
        self.built = True
        if self._first_weights is not None:
            self.set_weights(self._first_weights)
            self._first_weights = None
        sessions.take_waiting()

    def _set_masks(self, inputs: Any, outputs: Any, masks: Any) -> None:
        if not nest.tensors_in(masks) and type(self).compute_mask is Layer.compute_mask:
            return
        masks = self.compute_mask(inputs, masks)
        leaves = nest.flatten(outputs)
        row = list(masks) if isinstance(masks, list | tuple) else [masks]
        for y, mask in zip(leaves, [*row, *[None] * len(leaves)], strict=False):
            set_mask(y, mask)

    def _regularize_activity(self, outputs: Any) -> None:
        if self.activity_regularizer is None:
            return
        for y in nest.flatten(outputs):
            rows = tf.cast(tf.shape(y)[0], y.dtype)
            self.add_loss(self.activity_regularizer(y) / rows, inputs=True)

    # -- weights

    def add_weight(
        self,
        name: str | None = None,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Callable[[Any], Any] | None = None,
        partitioner: Any = None,
        use_resource: bool | None = None,
        **options: Any,
    ) -> Any:
        """Create a weight of the layer, a variable.

        Args:
            name: in the layer's scope.
            shape: a scalar by default.
            dtype: the layer's by default.
            initializer: an initializer or its name; by default `glorot_uniform` for floating
                weights.
            regularizer: a function from the weight to a loss.
            trainable: whether training changes it.
            constraint: applied after each update.
            partitioner, use_resource: accepted for old programs.
        """
        del partitioner, use_resource
        wanted = tf.as_dtype(dtype or self.dtype or "float32")
        default = "glorot_uniform" if wanted.is_floating else "zeros"
        make = initializers.get(default if initializer is None else initializer)
        dims = [] if shape is None else [int(d or 0) for d in tf.TensorShape(shape).as_list()]
        collections = options.get("collections")
        variable = tf.Variable(
            lambda: initializers.filled(make, dims, wanted), name=name or "variable", dtype=wanted,
            trainable=trainable is not False, constraint=constraints.get(constraint),
            collections=collections,
        )  # fmt: skip
        graph_state().variables.append(variable)
        (self._trainable_weights if variable.trainable else self._other_weights).append(variable)
        self._seen_weights.add(id(variable))
        if regularizer is not None:
            self._regularized.append((variable, regularizers.get(regularizer)))
        return variable

    add_variable = add_weight

    def get_weights(self) -> list[Any]:
        """The values of all weights, in the order of `weights`."""
        with self._graph_of_name.as_default():
            return sessions.values_of(self.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the values of all weights.

        Raises:
            StateError: their number or shapes differ.
        """
        variables = self.weights
        shapes = [tuple(v.shape.as_list()) for v in variables]
        new_shapes = [tuple(getattr(w, "shape", ())) for w in weights]
        if shapes != new_shapes:
            pairs = [f"{v.name} {s}" for v, s in zip(variables, shapes, strict=True)]
            raise fail(
                StateError,
                f"set_weights: expected for {self.name} {len(shapes)} weights {pairs}, got "
                f"{len(new_shapes)} of shapes {new_shapes}",
            )
        with self._graph_of_name.as_default():
            sessions.assign_values(list(zip(variables, weights, strict=True)))

    def count_params(self) -> int:
        """The number of elements of all weights.

        Raises:
            StateError: the layer is not built.
        """
        if not self.built:
            raise fail(
                StateError, f"count_params: expected {self.name} to be built; call it or build()"
            )
        return sum(int(v.shape.num_elements() or 0) for v in self.weights)

    def checkpoint_weights(self) -> dict[str, Any]:
        """The layer's weights by their names in weight files."""
        named: dict[str, Any] = {}
        for variable in self.weights:
            name = base = variable.op.name.rpartition("/")[2]
            count = 0
            while name in named:
                count += 1
                name = f"{base}_{count}"
            named[name] = variable
        return named


def nest_shapes(shape: Any, function: Callable[[Any], Any]) -> Any:
    """`function(shape)` for one shape, or for each one in a list."""
    if isinstance(shape, list) and shape and isinstance(shape[0], list | tuple | tf.TensorShape):
        return [function(s) for s in shape]
    return function(shape)


def _first_shape(options: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The shape of inputs, with the batch axis, from the options of a first layer."""
    if options.get("batch_input_shape") is not None:
        return tuple(options["batch_input_shape"])
    shape = options.get("input_shape")
    if shape is None and options.get("input_dim") is not None:
        shape = (options["input_dim"],)
        if "input_length" in options:
            shape = (options["input_length"], *shape)
    if shape is None:
        return None
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    return (options.get("batch_size"), *dims)


def _distinct(outputs: Any, inputs: Sequence[Any]) -> Any:
    """Outputs with a copy of each that is also an input, so that each has one history."""
    known = {id(x) for x in inputs}

    def own(y: Any) -> Any:
        return tf.identity(y) if id(y) in known else y

    return nest.mapped(own, outputs)
