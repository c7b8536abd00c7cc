"""An iterator over a pipeline, with a resumable state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.errors import StateError
from weft.pipeline.saved_state import from_json, to_json
from weft.pipeline.stage import Context, Stage, State

VERSION: Final = 1


class Iterator:
    """The elements of one epoch.

    Args:
        shown: converts elements before the user gets them.
    """

    def __init__(
        self, stage: Stage, context: Context, shown: Callable[[Any], Any] | None = None
    ) -> None:
        self._stage = stage
        self._shown = shown
        self.context = context
        self.ended = False
        self._cursor = stage.open(context)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        try:
            element = next(self._cursor)
        except StopIteration:
            self.ended = True
            raise
        return element if self._shown is None else self._shown(element)

    def state_dict(self) -> State:
        """The position of this pass, exact between any two elements.

        Elements that were read ahead and not used are computed again. The state consists of
        numbers, and of the elements in windows, in buckets, and in `shuffle` buffers whose inputs
        have no indices. It can be saved as JSON, unless such an element is neither an array, a
        number, a string, bytes nor a container of these; then it needs pickle.
        """
        return {
            "version": VERSION,
            "epoch": self.context.epoch,
            "seed": self.context.seed,
            "ended": self.ended,
            "stages": self._stage.signature(),
            "position": to_json(self._cursor.state()),
        }

    def load_state_dict(self, state: State) -> None:
        """Resume where `state_dict` was called, on a pipeline that was built the same way.

        Raises:
            StateError: the state belongs to another pipeline or to a newer version.
        """
        check_state(self._stage, state)
        self._cursor.close()
        self.context = self.context._replace(epoch=state["epoch"], seed=state["seed"])
        self._cursor = self._stage.open(self.context)
        self._cursor.restore(from_json(state["position"]))
        self.ended = state["ended"]

    def close(self) -> None:
        """Stop the threads that read ahead."""
        self.ended = True
        self._cursor.close()


def check_state(stage: Stage, state: State) -> None:
    """Raise if it is not a state of this pipeline.

    Raises:
        StateError: see above.
    """
    if not isinstance(state, dict) or "version" not in state:  # pyright: ignore
        raise StateError(f"load_state_dict: expected a pipeline's state, got {state!r:.80}")
    if state["version"] > VERSION:
        text = f"version {VERSION} or older, got version {state['version']}"
        raise StateError(f"load_state_dict: expected {text}; a newer Weft reads it")
    expected = stage.signature()
    if state["stages"] != expected:
        raise StateError(
            "load_state_dict: expected the state of this pipeline, "
            f"{_shown(expected)}, got one of {_shown(state['stages'])}"
        )


def _shown(signature: list[Any]) -> str:
    """A description such as `batch(32) < shuffle < range`."""
    name, *inputs = signature
    if len(inputs) > 1:
        return f"{name} < ({', '.join(map(_shown, inputs))})"
    return f"{name} < {_shown(inputs[0])}" if inputs else name
