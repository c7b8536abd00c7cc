"""Types of tensors on CUDA devices, of which there are none: programs list them."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.errors import ConfigError

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
]  # fmt: skip


class _OnDevice(type):
    """The class of a type that no tensor is of; calls raise."""

    is_cuda, is_sparse = True, False

    def __call__(cls, *given: Any, **options: Any) -> NoReturn:
        """Refused.

        Raises:
            ConfigError: always.
        """
        raise ConfigError.here(f"cuda.{cls.__name__}: there is no CUDA device: leave out cuda")


def _typed(name: str) -> _OnDevice:
    return _OnDevice(name, (), {"__module__": __name__, "__doc__": "Of no tensor."})


BFloat16Tensor = _typed("BFloat16Tensor")
BoolTensor = _typed("BoolTensor")
ByteTensor = _typed("ByteTensor")
CharTensor = _typed("CharTensor")
DoubleTensor = _typed("DoubleTensor")
FloatTensor = _typed("FloatTensor")
HalfTensor = _typed("HalfTensor")
IntTensor = _typed("IntTensor")
LongTensor = _typed("LongTensor")
ShortTensor = _typed("ShortTensor")
