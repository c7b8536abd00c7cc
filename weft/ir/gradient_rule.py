"""A node's own rule of differentiation, as an attribute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GradientRule:
    """How to differentiate one node.

    What the node computes does not depend on it: the text of a graph leaves it out.
    """

    rule: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        """The cotangents of the inputs."""
        return self.rule(*args)
