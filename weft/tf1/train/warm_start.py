"""`init_from_checkpoint`: variables whose initial values are a checkpoint's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.train.checkpoint_reader import CheckpointReader, load_checkpoint
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_list import global_variables

__all__ = ["init_from_checkpoint"]


def init_from_checkpoint(ckpt_dir_or_file: str, assignment_map: Mapping[str, Any]) -> None:
    """Variables get the values of a checkpoint when they are initialized.

    Args:
        ckpt_dir_or_file: a checkpoint, or its folder.
        assignment_map: from a name in the file to a variable or its name; or from a scope in the
            file, with `/` at its end, to a scope of variables, all of which must be in the file.

    Raises:
        ArgumentError: a variable or a name in the file is missing, or shapes differ.
    """
    reader = load_checkpoint(ckpt_dir_or_file)
    variables = {v.op.name: v for v in global_variables()}
    for name, target in dict(assignment_map).items():
        if isinstance(target, Variable):
            _start(reader, name, target)
        elif not isinstance(target, str):
            for part in target:
                _start(reader, name, part)
        elif target.endswith("/"):
            scope, inside = "" if name == "/" else name, "" if target == "/" else target
            found = [v for key, v in variables.items() if key.startswith(inside)]
            if not found:
                text = f"expected variables in {target!r}, got none"
                raise fail(ArgumentError, f"init_from_checkpoint: {text}")
            for variable in found:
                _start(reader, scope + variable.op.name.removeprefix(inside), variable)
        elif target in variables:
            _start(reader, name, variables[target])
        else:
            text = f"there is no variable {target!r}"
            raise fail(ArgumentError, f"init_from_checkpoint: {text}")


def _start(reader: CheckpointReader, name: str, variable: Variable) -> None:
    if not reader.has_tensor(name):
        text = f"Tensor {name} is not found in the checkpoint"
        raise fail(ArgumentError, f"init_from_checkpoint: {text}")
    value = reader.get_tensor(name)
    if not variable.shape.is_compatible_with(value.shape):
        text = f"Shape of variable {variable.name} ({variable.shape}) doesn't match with shape of"
        raise fail(ArgumentError, f"init_from_checkpoint: {text} tensor {name} ({value.shape})")
    variable.start_from(value)
