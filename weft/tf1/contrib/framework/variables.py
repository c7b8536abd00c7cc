"""Variables of models: which there are, and their values from checkpoints."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from weft.tf1.contrib.framework.arg_scope import add_arg_scope
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.default_graph import get_collection
from weft.tf1.framework.graph import get_default_graph
from weft.tf1.train.checkpoint_reader import load_checkpoint
from weft.tf1.train.saver import Saver
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_scope import get_variable

__all__ = [
    "add_model_variable", "assign_from_checkpoint_fn", "filter_variables",
    "get_local_variables", "get_model_variables", "get_trainable_variables",
    "get_unique_variable", "get_variables", "get_variables_by_name", "get_variables_by_suffix",
    "get_variables_to_restore", "local_variable", "model_variable", "variable",
]  # fmt: skip


@add_arg_scope
def variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
    regularizer: Any = None, trainable: bool = True, collections: Any = None,
    caching_device: Any = None, device: Any = None, partitioner: Any = None,
    custom_getter: Any = None, use_resource: bool | None = None,
) -> Any:  # fmt: skip
    """`get_variable`, whose collections are those given and the global ones.

    Args:
        name, shape, dtype, initializer, regularizer, trainable, caching_device, partitioner,
            custom_getter, use_resource: as in `tf.get_variable`.
        collections: in which it also is.
        device: where it lies.
    """
    names = list(dict.fromkeys([*(collections or ()), GraphKeys.GLOBAL_VARIABLES]))
    with get_default_graph().device(device if device is not None else ""):
        return get_variable(
            name, shape, dtype, initializer, regularizer, trainable, names, caching_device,
            partitioner, use_resource=use_resource, custom_getter=custom_getter,
        )  # fmt: skip


@add_arg_scope
def model_variable(
    name: str, shape: Any = None, dtype: Any = "float32", initializer: Any = None,
    regularizer: Any = None, trainable: bool = True, collections: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """A variable that is also in `MODEL_VARIABLES`.

    Args:
        name, shape, dtype, initializer, regularizer, trainable, collections, options: as in
            `variable`.
    """
    names = [*(collections or ()), GraphKeys.MODEL_VARIABLES]
    return variable(
        name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
        trainable=trainable, collections=names, **options,
    )  # fmt: skip


def local_variable(initial_value: Any, validate_shape: bool = True, name: str | None = None) -> Any:
    """A variable that is neither trained nor saved.

    Args:
        initial_value, validate_shape, name: as in `tf.Variable`.
    """
    return Variable(
        initial_value, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES],
        validate_shape=validate_shape, name=name,
    )  # fmt: skip


def add_model_variable(var: Any) -> None:
    """Adds a variable to `MODEL_VARIABLES`."""
    if var not in get_collection(GraphKeys.MODEL_VARIABLES):
        get_default_graph().add_to_collection(GraphKeys.MODEL_VARIABLES, var)


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """The variables of a scope whose names end so.

    Args:
        scope: a name's beginning, or a `VariableScope`.
        suffix: the last part of the names.
        collection: among these.
    """
    prefix = getattr(scope, "name", scope)
    found = get_collection(collection, prefix)
    return [v for v in found if suffix is None or f"/{v.op.name}".endswith(f"/{suffix}")]


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables that layers have created."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The local variables."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The trainable variables."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """The variables whose names end so."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """The variables whose names have this last part."""
    return get_variables(scope, given_name)


def get_unique_variable(var_op_name: str) -> Any:
    """The variable of this name.

    Raises:
        ValueError: there is none, or there are several.
    """
    found = [v for v in get_variables(var_op_name) if v.op.name == var_op_name]
    if len(found) != 1:
        raise ValueError(f"expected one variable {var_op_name!r}, got {len(found)}")
    return found[0]


def get_variables_to_restore(
    include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
) -> list[Any]:
    """The global variables of some scopes and not of others.

    Args:
        include: scopes; all by default.
        exclude: scopes.
    """
    chosen = [v for scope in include or [None] for v in get_variables(scope)]
    out = {id(v) for scope in exclude or () for v in get_variables(scope)}
    return [v for v in chosen if id(v) not in out]


def filter_variables(
    var_list: Sequence[Any], include_patterns: Sequence[str] | None = None,
    exclude_patterns: Sequence[str] | None = None, reg_search: bool = True,
) -> list[Any]:  # fmt: skip
    """The variables whose names match one pattern of the first and none of the second kind."""
    match = re.search if reg_search else re.match
    kept = [
        v for v in var_list
        if not include_patterns or any(match(p, v.op.name) for p in include_patterns)
    ]  # fmt: skip
    return [v for v in kept if not any(match(p, v.op.name) for p in exclude_patterns or ())]


def assign_from_checkpoint_fn(
    model_path: str,
    var_list: Any,
    ignore_missing_vars: bool = False,
    reshape_variables: bool = False,
) -> Callable[[Any], None]:
    """A function of a session that restores variables.

    Args:
        model_path: the checkpoint.
        var_list: variables, or a dict from names in the file to variables.
        ignore_missing_vars: leave variables as they are that the file lacks.
        reshape_variables: values take the variables' shapes.
    """
    named = var_list if isinstance(var_list, dict) else {v.op.name: v for v in var_list}
    if ignore_missing_vars:
        reader = load_checkpoint(model_path)
        named = {name: v for name, v in named.items() if reader.has_tensor(name)}
    saver = Saver(named, reshape=reshape_variables) if named else None

    def restore(session: Any) -> None:
        if saver is not None:
            saver.restore(session, model_path)

    return restore
