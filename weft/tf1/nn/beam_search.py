"""CTC beam search, on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def log_softmax(x: Array) -> Array:
    """Log softmax along the last axis."""
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


class _Tree:
    """Prefixes of label sequences: each but the empty one is another prefix and a label."""

    def __init__(self) -> None:
        self.parents = [-1]
        self.labels = [-1]
        self._children: dict[tuple[int, int], int] = {}

    def child(self, node: int, label: int) -> int:
        """The prefix extended by a label."""
        found = self._children.get((node, label))
        if found is None:
            found = self._children[node, label] = len(self.parents)
            self.parents.append(node)
            self.labels.append(label)
        return found

    def path(self, node: int) -> list[int]:
        """The labels of a prefix."""
        found: list[int] = []
        while node > 0:
            found.append(self.labels[node])
            node = self.parents[node]
        return found[::-1]


def best_paths(logs: Array, width: int, top: int) -> tuple[list[list[int]], list[float]]:
    """The most likely label sequences and their log probabilities.

    Args:
        logs: log probabilities, [time, classes]; the last class is the blank.
        width: the number of prefixes kept at each step.
        top: the number of results; missing ones are empty, with probability 0.
    """
    tree = _Tree()
    nodes = np.zeros(1, np.int64)
    after_blank, after_label = np.zeros(1), np.full(1, -np.inf)
    for now in logs:
        nodes, after_blank, after_label = _step(tree, nodes, after_blank, after_label, now, width)
    scores = np.logaddexp(after_blank, after_label)
    order = np.argsort(-scores, kind="stable")[:top]
    paths = [tree.path(int(nodes[i])) for i in order]
    missing = top - len(paths)
    return paths + [[]] * missing, [*scores[order].tolist(), *[-np.inf] * missing]


def _step(
    tree: _Tree, nodes: Array, after_blank: Array, after_label: Array, logs: Array, width: int
) -> tuple[Array, Array, Array]:
    """The most likely prefixes after one more step."""
    blank = len(logs) - 1
    labels = np.array([tree.labels[node] for node in nodes.tolist()])
    total = np.logaddexp(after_blank, after_label)
    stay_blank = total + logs[blank]
    stay_label = np.where(labels >= 0, after_label + logs[labels], -np.inf)
    grown = total[:, None] + logs[None, :blank]
    ended = np.flatnonzero(labels >= 0)
    grown[ended, labels[ended]] = after_blank[ended] + logs[labels[ended]]
    where = {node: place for place, node in enumerate(nodes.tolist())}
    for place in ended.tolist():  # prefixes whose parent is also kept can be reached in two ways
        parent = where.get(tree.parents[nodes[place]])
        if parent is not None:
            label = labels[place]
            stay_label[place] = np.logaddexp(stay_label[place], grown[parent, label])
            grown[parent, label] = -np.inf
    scores = np.concatenate([np.logaddexp(stay_blank, stay_label), grown.reshape(-1)])
    order = np.argsort(-scores, kind="stable")[:width]
    order = order[scores[order] > -np.inf]
    kept, new = order[order < len(nodes)], order[order >= len(nodes)] - len(nodes)
    rows, columns = new // max(blank, 1), new % max(blank, 1)
    pairs = zip(nodes[rows].tolist(), columns.tolist(), strict=True)
    children = np.array([tree.child(node, label) for node, label in pairs], np.int64)
    return (
        np.concatenate([nodes[kept], children]),
        np.concatenate([stay_blank[kept], np.full(len(new), -np.inf)]),
        np.concatenate([stay_label[kept], grown[rows, columns]]),
    )
