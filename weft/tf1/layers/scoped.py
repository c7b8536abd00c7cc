"""Keras layers in variable scopes: what all of `tf.layers` is made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from weft.documentation import named, with_arguments
from weft.tf1.control.dependency import identity
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor, static_value
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import get_default_graph
from weft.tf1.framework.option import only
from weft.tf1.framework.tensor_shape import as_shape
from weft.tf1.keras.engine.graph_state import snake
from weft.tf1.keras.engine.input_spec import check_inputs
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.variable.variable_scope import get_variable, variable_scope

Class = TypeVar("Class", bound=type[Any])


class _Common:
    """What arguments mean that layers have besides Keras's.

    Args:
        inputs: a tensor, or an array.
        training: whether to act as in training: a Python or a tensor boolean.
        trainable: whether training changes the variables.
        name: of the variable scope; by default the layer's, made unique.
        dtype: of the variables; that of the first inputs by default.
        reuse: whether to share the variables of an earlier layer of this name.
        others: further options of TensorFlow's; an error if their values are not supported.
        activity_regularizer: a loss of the outputs, a function.
    """


class Scoped(Layer):
    """A Keras layer whose variables come from `get_variable`, in a scope of its own.

    The first call creates the variables, under the layer's name made unique; later calls share
    them. Regularization losses and updates are in the graph's collections.

    Args:
        name: of the scope; by default the layer's, made unique.
        dtype: of the variables; that of the first inputs by default.
        _reuse: whether to share the variables of an earlier layer of this name.
        _scope: the scope's name as it is.
        _flags: arguments of `call`, such as `training`; a constant decides now.
    """

    def __init__(
        self, *args: Any, name: str | None = None, dtype: Any = None, _reuse: Any = None,
        _scope: Any = None, _flags: Mapping[str, Any] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        options = {n: v for n, v in options.items() if v is not None}
        super().__init__(*args, name=name or snake(type(self).__name__), **options)
        self.dtype = None if dtype is None else as_dtype(dtype)
        self._reuse, self._scope, self._entered = _reuse, _scope, False
        off = {"training": False} if "training" in inspect.signature(self.call).parameters else {}
        self._flags = {n: _static(flag) for n, flag in (off | dict(_flags or {})).items()}
        for option, default in getattr(self, "weight_options", {}).items():
            if default == "glorot_uniform" and option not in options:
                setattr(self, option, None)  # the variable scope's initializer

    def build(self, input_shape: Any) -> None:
        """Create the variables in the current scope, for inputs of this shape."""
        super().build(as_shape(input_shape))

    def add_weight(
        self, name: str | None = None, shape: Any = None, dtype: Any = None,
        initializer: Any = None, regularizer: Any = None, trainable: bool | None = None,
        constraint: Any = None, partitioner: Any = None, use_resource: bool | None = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        """The variable of this name in the current scope."""
        del partitioner, use_resource
        return get_variable(
            name or "variable", list(shape or ()), dtype or self.dtype, initializer, regularizer,
            self.trainable and trainable is not False, constraint=constraint,
        )  # fmt: skip

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Add operations to `GraphKeys.UPDATE_OPS`."""
        get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, updates)

    def _regularize_activity(self, outputs: Any) -> None:
        if self.activity_regularizer is not None:
            loss = self.activity_regularizer(outputs)
            get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def __call__(self, inputs: Any, **flags: Any) -> Any:
        """The layer's output.

        Args:
            inputs: a tensor, or an array.
            flags: arguments of `call` for this call alone, such as `training`.
        """
        x = convert_to_tensor(inputs)
        named = self.name if self._reuse and self._scope is None else self._scope
        reuse = True if self._entered else self._reuse
        with variable_scope(named, self.name, [x], reuse=reuse) as scope:
            check_inputs(self, x)
            if not self.built:
                self.dtype = self.dtype or x.dtype.base_dtype
                self.build(x.shape)
            self._scope, self._entered = scope, True
            y = self.call(x, **self._flags | {n: _static(flag) for n, flag in flags.items()})
            y = identity(x) if y is x else y
            self._regularize_activity(y)
            return y

    apply = __call__


def described(cls: type[Scoped], names: Iterable[str]) -> str:
    """A layer's docstring, with what these arguments mean."""
    return with_arguments(cls.__doc__, names, _Common, *cls.__mro__[1:])


def documented(cls: Class) -> Class:
    """The class, with what its arguments mean."""
    cls.__doc__ = described(cls, inspect.signature(cls).parameters)
    return cls


def _static(flag: Any) -> Any:
    known = static_value(flag)
    return flag if known is None else bool(known)


def layer_function(
    cls: type[Scoped], left_out: Sequence[str] = (), flags: Mapping[str, Any] | None = None,
    ignored: Mapping[str, Any] | None = None, returns: str = "Any",
) -> Callable[..., Any]:  # fmt: skip
    """A layer as a function of its inputs: `conv2d` of `Conv2D`.

    Args:
        cls: the class of the layer.
        left_out: arguments of the Keras layer that the function does not have.
        flags: arguments of the layer's `call`, with their defaults.
        ignored: further options that TensorFlow has, with their supported values.
        returns: the type of the outputs.
    """
    flags = flags or {}
    signature = _signature(cls, left_out, flags, ignored is not None, returns)
    name = snake(cls.__name__)

    @named(name, described(cls, signature.parameters), cls.__module__)
    def layer(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        chosen = bound.arguments
        only(name, chosen.pop("others", {}), **ignored or {})
        inputs, scope, reuse = (chosen.pop(n) for n in ("inputs", "name", "reuse"))
        if flags:
            chosen["_flags"] = {n: chosen.pop(n) for n in flags}
        return cls(**chosen, _scope=scope, _reuse=reuse)(inputs)

    layer.__signature__ = signature  # type: ignore[attr-defined]
    return layer


_TYPES: Final = {"activation": "Activation", "axis": "int", "data_format": "str", "filters": "int"}
_KINDS: Final = ("initializer", "regularizer", "constraint")


def _signature(
    cls: type[Scoped], left_out: Sequence[str], flags: Mapping[str, Any], more: bool, returns: str
) -> inspect.Signature:
    """The Keras layer's arguments, the options of its weights by what they are, and the scope's."""
    keras: Any = cls.__mro__[2]
    weights = [[n for n in keras.weight_options if n.endswith(part)] for part in _KINDS]
    if "activation" in inspect.signature(keras).parameters:
        weights.insert(2, ["activity_regularizer"])
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD

    def parameter(name: str, default: Any, annotation: Any = "Any") -> inspect.Parameter:
        return inspect.Parameter(name, plain, default=default, annotation=annotation)

    own = [
        parameter(p.name, "channels_last" if p.name == "data_format" else p.default,
                  _TYPES.get(p.name, p.annotation))
        for p in inspect.signature(keras).parameters.values()
        if p.kind is plain and p.name not in left_out
    ]  # fmt: skip
    others = [inspect.Parameter("others", inspect.Parameter.VAR_KEYWORD, annotation="Any")]
    return inspect.Signature(
        [
            parameter("inputs", inspect.Parameter.empty), *own,
            *[parameter(n, None) for names in weights for n in names],
            *[parameter(n, default) for n, default in flags.items()],
            parameter("trainable", True, "bool"), parameter("name", None, "str | None"),
            parameter("reuse", None), *(others if more else []),
        ], return_annotation=returns,
    )  # fmt: skip
