"""Messages between stages: activations forward, and gradients backward."""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

import numpy as np

from weft.collectives.elements import array, kind
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.tensor import Tensor
from weft.ir.dtype import NAMED, as_dtype
from weft.transport.base import Array
from weft.transport.group import Group
from weft.transport.message import receive_from, send_to

_POLL_SECONDS: Final = 50e-6


class Kind(NamedTuple):
    """What a receiver must know about a tensor in advance."""

    dtype: str
    shape: tuple[int, ...]
    requires_grad: bool


class Channel:
    """Messages from one stage to another, in order; within one rank, without copies.

    Sends are asynchronous: the communication thread polls them while this process computes.

    Args:
        number: distinguishes the channel from others between the same ranks.
    """

    def __init__(self, group: Group, source: int, target: int, number: int) -> None:
        self._group = group
        self._source, self._target = source, target
        self._tag = -1 - number  # users' tags are positive
        self._handed: deque[list[Array]] = deque()
        self._sent: list[tuple[Future[Any], Future[Any]]] = []
        self._known: deque[list[Kind]] = deque()

    def announce(self, kinds: Sequence[Kind]) -> None:
        """Tell the receiver which tensors each message contains."""
        if self._source == self._target:
            self._known.append(list(kinds))
            return
        text = np.frombuffer(json.dumps(kinds).encode(), np.uint8).copy()
        self._post(np.array([text.size]), "the length of a description")
        self._post(text, "a description")

    def expect(self) -> list[Kind]:
        """Receive the announcement."""
        if self._source == self._target:
            return self._known.popleft()
        length = np.zeros(1, np.int64)
        self._wait(length, "the length of a description")
        text = np.zeros(length[0], np.uint8)
        self._wait(text, "a description")
        return [Kind(d, tuple(s), bool(r)) for d, s, r in json.loads(text.tobytes())]

    def send(self, tensors: Sequence[Tensor], what: str) -> None:
        """Start to send the tensors of one message."""
        arrays = [array(x).copy() for x in tensors]
        if self._source == self._target:
            self._handed.append(arrays)
            return
        for x in arrays:
            self._post(x, what)

    def receive(self, kinds: Sequence[Kind], what: str) -> list[Tensor]:
        """Wait for the tensors of one message."""
        if self._source == self._target:
            return [wrap(leaf(x)) for x in self._handed.popleft()]
        arrays = [np.empty(k.shape, NAMED[k.dtype].numpy) for k in kinds]
        for x in arrays:
            self._wait(x, what)
        return [wrap(leaf(x)) for x in arrays]

    def wait_for_sends(self) -> None:
        """Wait until all sent messages have arrived."""
        for driven, sent in self._sent:
            driven.result()
            sent.result()
        self._sent.clear()

    def _post(self, x: Array, what: str) -> None:
        text = f"send {what} to rank {self._group.ranks[self._target]} of {kind(x)}"
        sent = send_to(self._group, x, self._target, self._tag, text)
        transport, until = self._group.transport, time.monotonic() + self._group.timeout

        def drive() -> None:  # whoever waits for `sent` raises the error
            while not sent.done() and transport.failure is None and time.monotonic() < until:
                time.sleep(_POLL_SECONDS)

        self._sent = [pair for pair in self._sent if not pair[0].done()]
        self._sent.append((transport.submit(drive), sent))

    def _wait(self, out: Array, what: str) -> None:
        text = f"receive {what} from rank {self._group.ranks[self._source]} of {kind(out)}"
        receive_from(self._group, out, self._source, self._tag, text).result()


def kinds_of(tensors: Sequence[Tensor]) -> list[Kind]:
    """What a receiver must know about these tensors."""
    return [Kind(as_dtype(x.dtype).name, tuple(x.shape), x.requires_grad) for x in tensors]


def channels(group: Group, stages: int) -> tuple[list[Channel], list[Channel]]:
    """The channels between consecutive stages: forward, and backward."""
    ranks = [i % group.size for i in range(stages)]
    pairs = list(enumerate(itertools.pairwise(ranks)))
    forward = [Channel(group, a, b, 2 * i) for i, (a, b) in pairs]
    return forward, [Channel(group, b, a, 2 * i + 1) for i, (a, b) in pairs]
