"""`op.node_def`: what an operation is, as a record."""

from __future__ import annotations

from typing import NamedTuple


class NodeDef(NamedTuple):
    """An operation as a record.

    Attributes:
        name: its unique name.
        op: TensorFlow's type name.
        input: names of what it reads, with suffix `:1` for a second output and prefix `^` for
            control dependencies.
        device: where it was put.
    """

    name: str
    op: str
    input: tuple[str, ...]
    device: str

    def __str__(self) -> str:
        fields = [("name", self.name), ("op", self.op), *[("input", x) for x in self.input]]
        fields += [("device", self.device)] if self.device else []
        return "".join([f'{name}: "{text}"\n' for name, text in fields])
