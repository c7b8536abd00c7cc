"""Classes that stand for names that Weft lacks: packages import them, and do not use them."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.mirror import table

__all__ = ["Absent", "absent"]


class Absent(type):
    """The class of such classes: nothing is an instance; a call or an attribute raises."""

    path: str

    def __call__(cls, *arguments: Any, **options: Any) -> NoReturn:
        """Refused.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(table.missing(cls.path))

    def __getattr__(cls, name: str) -> NoReturn:
        raise AttributeError(table.missing(f"{cls.path}.{name}"))

    def __repr__(cls) -> str:
        return f"<{table.missing(cls.path)}>"


def absent(path: str) -> Absent:
    """The class that stands for a name.

    >>> isinstance(1, absent("torch.distributed.fsdp.FullyShardedDataParallel"))
    False
    """
    return Absent(path.rpartition(".")[2], (), {"path": path})
