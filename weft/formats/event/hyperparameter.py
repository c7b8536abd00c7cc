"""Hyperparameters of a run and its metrics, for TensorBoard's plugin.

HParamsPluginData   version = 1, experiment = 2, session_start_info = 3, session_end_info = 4
Experiment          hparam_infos = 4: name = 1, type = 4, domain_discrete = 5
                    metric_infos = 5: name = 1 (tag = 2)
SessionStartInfo    hparams = 1: a map of text to Value
SessionEndInfo      status = 1, end_time_secs = 2
Value               number_value = 2, string_value = 3, bool_value = 4
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError
from weft.formats import wire
from weft.formats.event import message

SUCCESS, FAILURE, RUNNING = 1, 2, 3
_TEXT, _BOOL, _NUMBER = 1, 2, 3
_NOTHING: Final = message.tensor_proto(np.zeros(0, np.float32))


def experiment(
    hparams: Mapping[str, Any], metrics: Iterable[str], discrete: Mapping[str, Sequence[Any]]
) -> bytes:
    """The hyperparameters and metrics; `discrete` lists the values that are tried.

    Raises:
        DTypeError: a value that is not a number, string or boolean.
    """
    content = b""
    for name, value in hparams.items():
        info = wire.delimited(1, name) + wire.integer(4, _kind(name, value))
        if name in discrete:
            values = [wire.delimited(1, _value(name, each)) for each in discrete[name]]
            info += wire.delimited(5, b"".join(values))
        content += wire.delimited(4, info)
    for tag in metrics:
        content += wire.delimited(5, wire.delimited(1, wire.delimited(2, tag)))
    return _wrapped("_hparams_/experiment", 2, content)


def session_start(hparams: Mapping[str, Any]) -> bytes:
    """The hyperparameters of one run."""
    content = b""
    for name, value in hparams.items():
        entry = wire.delimited(1, name) + wire.delimited(2, _value(name, value))
        content += wire.delimited(1, entry)
    return _wrapped("_hparams_/session_start_info", 3, content)


def session_end(status: int) -> bytes:
    """How the run ended."""
    return _wrapped("_hparams_/session_end_info", 4, wire.integer(1, status))


def _wrapped(tag: str, number: int, content: bytes) -> bytes:
    data = wire.integer(1, 0) + wire.delimited(number, content)
    return message.tensor_value(tag, _NOTHING, message.metadata("hparams", data))


def _kind(name: str, value: Any) -> int:
    if isinstance(value, str):
        return _TEXT
    kind = np.asarray(value).dtype.kind
    if kind not in "biuf" or np.ndim(value):
        raise DTypeError(f"hparams: {name!r}: expected a number, string or boolean, got {value!r}")
    return _BOOL if kind == "b" else _NUMBER


def _value(name: str, value: Any) -> bytes:
    kind = _kind(name, value)
    if kind == _TEXT:
        return wire.delimited(3, value)
    return wire.integer(4, bool(value)) if kind == _BOOL else wire.float64(2, float(value))
