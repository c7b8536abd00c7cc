"""`torch.version` and `torch.torch_version`: whose features Weft's names have."""

from __future__ import annotations

import re
from typing import Any, Final

from weft.mirror.table import LIBRARIES

__all__ = ["TorchVersion", "cuda", "debug", "git_version", "hip", "xpu"]


class TorchVersion(str):
    """A version that is compared number by number, with texts, too.

    >>> TorchVersion("2.13.0") > "2.9.1"
    True
    """

    __slots__ = ()

    def _numbers(self, other: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
        parts: Any = other if isinstance(other, tuple) else _numbers_of(str(other))
        return _numbers_of(self), tuple(parts)

    def __lt__(self, other: object) -> bool:
        mine, others = self._numbers(other)
        return mine < others

    def __le__(self, other: object) -> bool:
        return self < other or self == other

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        mine, others = self._numbers(other)
        return mine == others

    def __hash__(self) -> int:
        return hash(str(self))


def _numbers_of(text: str) -> tuple[int, ...]:
    return tuple([int(part) for part in re.findall(r"\d+", text.partition("+")[0])])


__version__: Final = TorchVersion(LIBRARIES["torch"])
lightning_version: Final = LIBRARIES["lightning"]
torchmetrics_version: Final = LIBRARIES["torchmetrics"]
horovod_version: Final = LIBRARIES["horovod"]
jax_version: Final = LIBRARIES["jax"]
jax_version_info: Final = _numbers_of(jax_version)
cuda: Final = None
hip: Final = None
xpu: Final = None
debug: Final = False
git_version: Final = "weft"
