"""Tokenizers: one token per character, or byte pairs merged by frequency."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, DataError

__all__ = ["BytePairTokenizer", "CharTokenizer", "TextDataset"]

Array = np.ndarray[Any, Any]
_WORD: Final = re.compile(r" ?\w+| ?[^\w\s]+|\s+")  # as in GPT-2, without its contractions


class CharTokenizer:
    """One token for each character of a text.

    Args:
        text: its characters, sorted, are the tokens.

    >>> tokens = CharTokenizer("hello")
    >>> tokens.decode(tokens.encode("hole")), tokens.size
    ('hole', 4)
    """

    def __init__(self, text: str) -> None:
        self.characters = sorted(set(text))
        self._number = {c: i for i, c in enumerate(self.characters)}

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.characters)

    def encode(self, text: str) -> Array:
        """Token numbers, int64.

        Raises:
            DataError: a character is not in the vocabulary.
        """
        try:
            return np.array([self._number[c] for c in text], np.int64)
        except KeyError as error:
            text = f"CharTokenizer: expected characters it was made of, got {error.args[0]!r}"
            raise DataError(text) from None

    def decode(self, tokens: Iterable[int]) -> str:
        """The text."""
        return "".join(self.characters[int(t)] for t in tokens)


class BytePairTokenizer:
    """Byte pair encoding: any text can be encoded.

    Args:
        merges: pairs of tokens that become one, in order; each makes a new token, from 256 on.

    Source: Sennrich et al., "Neural machine translation of rare words with subword units", 2016, on
    bytes as in GPT-2.

    >>> tokens = BytePairTokenizer.train("low lower lowest low low", 260)
    >>> tokens.decode(tokens.encode("slow lower")), tokens.size
    ('slow lower', 260)
    """

    def __init__(self, merges: Sequence[tuple[int, int]] = ()) -> None:
        self.merges = [(int(a), int(b)) for a, b in merges]
        self.pieces = [bytes([n]) for n in range(256)]
        for a, b in self.merges:
            self.pieces.append(self.pieces[a] + self.pieces[b])
        self._rank = {pair: i for i, pair in enumerate(self.merges)}
        self._words: dict[str, list[int]] = {}

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.pieces)

    @classmethod
    def train(cls, text: str, size: int) -> BytePairTokenizer:
        """Merge the most frequent pair within words until there are `size` tokens.

        Raises:
            ArgumentError: `size` is less than the 256 bytes.
        """
        if size < 256:
            raise ArgumentError(f"BytePairTokenizer: expected size >= 256, got {size}")
        counts = Counter(_WORD.findall(text))
        words = [(list(word.encode()), count) for word, count in counts.items()]
        where: dict[tuple[int, int], set[int]] = {}
        pairs: Counter[tuple[int, int]] = Counter()
        for number, (word, count) in enumerate(words):
            _count(word, count, number, pairs, where)
        merges: list[tuple[int, int]] = []
        while len(merges) < size - 256 and pairs:
            best = max(pairs, key=lambda p: (pairs[p], -p[0], -p[1]))
            if pairs[best] < 2:
                break
            for number in sorted(where.pop(best)):
                word, count = words[number]
                _count(word, -count, number, pairs, where)
                words[number] = merged(word, best, 256 + len(merges)), count
                _count(words[number][0], count, number, pairs, where)
            pairs.pop(best, None)
            merges.append(best)
        return cls(merges)

    def encode(self, text: str) -> Array:
        """Token numbers, int64."""
        found: list[int] = []
        for word in _WORD.findall(text):
            if word not in self._words:
                self._words[word] = self._encoded(list(word.encode()))
            found += self._words[word]
        return np.array(found, np.int64)

    def _encoded(self, tokens: list[int]) -> list[int]:
        while len(tokens) > 1:
            neighbors = itertools.pairwise(tokens)
            rank, best = min((self._rank.get(p, len(self._rank)), p) for p in neighbors)
            if rank == len(self._rank):
                break
            tokens = merged(tokens, best, 256 + rank)
        return tokens

    def decode(self, tokens: Iterable[int]) -> str:
        """The text; invalid bytes become the replacement character."""
        return b"".join(self.pieces[int(t)] for t in tokens).decode(errors="replace")


def _count(word: list[int], count: int, number: int, pairs: Any, where: Any) -> None:
    for pair in itertools.pairwise(word):
        pairs[pair] += count
        if count > 0:
            where.setdefault(pair, set()).add(number)


def merged(tokens: list[int], pair: tuple[int, int], token: int) -> list[int]:
    """The tokens with each occurrence of the pair replaced, from the left.

    >>> merged([1, 2, 1, 2, 2], (1, 2), 9)
    [9, 9, 2]
    """
    found: list[int] = []
    i = 0
    while i < len(tokens):
        if i + 1 < len(tokens) and (tokens[i], tokens[i + 1]) == pair:
            found.append(token)
            i += 2
        else:
            found.append(tokens[i])
            i += 1
    return found


class TextDataset:
    """Windows of `length` tokens, each with the tokens that follow it: pairs (length,), (length,).

    Args:
        tokens: the tokens of a text, in order.
        length: the number of tokens in a window.
        stride: distance between the starts of windows; `length` by default.
    """

    def __init__(self, tokens: Any, length: int, stride: int | None = None) -> None:
        self.tokens = np.asarray(tokens, np.int64)
        self.length, self.stride = length, stride or length
        if length < 1 or len(self.tokens) <= length:
            text = f"expected more than {length} tokens, got {len(self.tokens)}"
            raise DataError(f"TextDataset: {text}")

    def __len__(self) -> int:
        return (len(self.tokens) - self.length - 1) // self.stride + 1

    def __getitem__(self, index: int) -> tuple[Array, Array]:
        if not 0 <= index < len(self):
            raise IndexError(f"TextDataset: expected 0 <= index < {len(self)}, got {index}")
        start = index * self.stride
        window = self.tokens[start : start + self.length + 1]
        return window[:-1], window[1:]
