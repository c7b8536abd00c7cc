"""Partition: one optimized step becomes one program a device and the values sent between them."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.node import TensorType
from weft.passes.step import Step


@dataclass(frozen=True)
class Stage:
    """A part of a step that one device computes without waiting for another.

    Attributes:
        device: its full name.
        step: its graph: feeds are `inputs`, fetches are `outputs`, updates are variables of the
            device.
        inputs: numbers of the values that it receives, in the order of the step's feeds.
        outputs: numbers of the values that it sends or that are fetched, in the order of fetches.
        after: stages, by position, that must be done before it begins although it receives
            nothing from them: they read a variable that it changes.
    """

    device: str
    step: Step
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Partition:
    """A step over several devices: stages in an order in which they can run one by one.

    Values are numbered: those that are fed, then those that stages give.

    Attributes:
        stages: of all devices.
        feeds: the number of each feed of the step.
        fetches: the number of each fetch.
        types: of all values, by number.
    """

    stages: tuple[Stage, ...]
    feeds: tuple[int, ...]
    fetches: tuple[int, ...]
    types: tuple[TensorType, ...]

    def readers(self, value: int) -> tuple[str, ...]:
        """The devices whose stages receive a value, each once."""
        return tuple(dict.fromkeys(s.device for s in self.stages if value in s.inputs))
