"""`TextVectorization`: numbers for the words of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine.layer import Layer

__all__ = ["TextVectorization"]

_PUNCTUATION: Final = re.compile(rb"[!\"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~']")
_FORMS: Final = {
    None: lambda text: text,
    "lower": bytes.lower,
    "strip_punctuation": lambda text: _PUNCTUATION.sub(b"", text),
    "lower_and_strip_punctuation": lambda text: _PUNCTUATION.sub(b"", text.lower()),
}
_MODES: Final = ("int", "multi_hot", "binary", "count")
_SPLITS: Final = ("whitespace", "character", None)


class TextVectorization(Layer):
    """Texts as numbers of words: 0 for none, 1 for unknown ones, then the most frequent first.

    Args:
        max_tokens: the most numbers; `None` for all words.
        standardize: the name of what is done to texts first, or a function of them, or `None`.
        split: `"whitespace"`, `"character"`, or `None`.
        ngrams: words that follow each other are tokens, too, up to this number.
        output_mode: `int`, or for each text one vector with an entry a word, `multi_hot` or
            `count`, whose first stands for unknown ones.
        output_sequence_length: the length of rows; that of the longest text by default.
        pad_to_max_tokens: vectors have `max_tokens` entries.
        vocabulary: the words, instead of `adapt`.
    """

    def __init__(
        self, max_tokens: int | None = None, standardize: Any = "lower_and_strip_punctuation",
        split: str | None = "whitespace", ngrams: int | None = None, output_mode: str = "int",
        output_sequence_length: int | None = None, pad_to_max_tokens: bool = False,
        vocabulary: Sequence[Any] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        if output_mode not in _MODES or split not in _SPLITS:
            text = f"expected output_mode of {_MODES} and split of {_SPLITS}"
            raise fail(ArgumentError, f"{self.name}: {text}, got {output_mode!r} and {split!r}")
        if not callable(standardize) and standardize not in _FORMS:
            text = f"expected standardize of {[*_FORMS]}, or a function, got {standardize!r}"
            raise fail(ArgumentError, f"{self.name}: {text}")
        self.max_tokens, self.standardize, self.split = max_tokens, standardize, split
        self.ngrams, self.output_mode = ngrams, output_mode
        self.output_sequence_length = output_sequence_length
        self.pad_to_max_tokens = pad_to_max_tokens
        self.vocabulary: list[str] = []
        self._autocast = False
        if vocabulary is not None:
            self.set_vocabulary(vocabulary)

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Learn the words of texts.

        Args:
            data: an array, or a dataset of texts or of batches.
            batch_size: accepted.
            steps: the number of batches; all by default.
        """
        del batch_size
        counts: Counter[bytes] = Counter()
        for i, texts in enumerate(data if isinstance(data, tf.data.Dataset) else [data]):
            if steps is not None and i >= steps:
                break
            formed = self._formed(tf.convert_to_tensor(texts))
            for text in np.ravel(formed.numpy() if hasattr(formed, "numpy") else np.array(texts)):
                counts.update(self._tokens(text))
        ordered = sorted(counts, key=lambda word: (counts[word], word), reverse=True)
        room = None if self.max_tokens is None else self.max_tokens - self._first
        self.vocabulary = [word.decode() for word in ordered[:room]]

    def set_vocabulary(self, vocabulary: Sequence[Any]) -> None:
        """The words, the most frequent first, with or without what stands for others."""
        words = [w.decode() if isinstance(w, bytes) else str(w) for w in vocabulary]
        self.vocabulary = [w for w in words if w not in ("", "[UNK]")]

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[str]:
        """The words by their numbers."""
        special = ["", "[UNK]"][2 - self._first :] if include_special_tokens else []
        return [*special, *self.vocabulary]

    def vocabulary_size(self) -> int:
        """The number of words, with those that stand for none and for unknown ones."""
        return len(self.vocabulary) + self._first

    def __call__(self, inputs: Any, *args: Any, **options: Any) -> Any:
        """The outputs, also for a list of texts."""
        return super().__call__(tf.convert_to_tensor(inputs), *args, **options)

    def call(self, inputs: Any) -> Any:
        """The numbers, (texts, length); or the vectors, (texts, words)."""
        x = tf.convert_to_tensor(inputs)
        numbers = {word.encode(): i for i, word in enumerate(self.vocabulary, self._first)}
        is_int, dims = self.output_mode == "int", x.shape.as_list()
        rows = dims[: 1 if dims[-1:] == [1] and len(dims) > 1 else len(dims)]
        size = self.max_tokens if self.pad_to_max_tokens else self.vocabulary_size()
        size = self.output_sequence_length if is_int else size

        def vectorized(texts: Any) -> Any:
            lists = [[numbers.get(t, self._first - 1) for t in self._tokens(text)]
                     for text in np.ravel(texts)]  # fmt: skip
            count = size if size is not None else max([len(row) for row in lists], default=0)
            found = np.zeros((len(lists), count), np.int64 if is_int else np.float32)
            for row, numbered in zip(found, lists, strict=True):
                if is_int:
                    row[: len(numbered)] = numbered[:count]
                else:
                    np.add.at(row, numbered, 1)
            if self.output_mode in ("multi_hot", "binary"):
                found = np.minimum(found, 1)
            return found.reshape(*np.shape(texts)[: len(rows)], count)

        y = tf.py_func(vectorized, [self._formed(x)], tf.int64 if is_int else tf.float32)
        if not hasattr(y, "numpy"):
            y.set_shape([*rows, size])
        return y

    @property
    def _first(self) -> int:
        """The number of the first word."""
        return 2 if self.output_mode == "int" else 1

    def _formed(self, x: Any) -> Any:
        return self.standardize(x) if callable(self.standardize) else x

    def _tokens(self, text: Any) -> list[bytes]:
        plain = text.encode() if isinstance(text, str) else bytes(text)
        if not callable(self.standardize):
            plain = _FORMS[self.standardize](plain)
        if self.split == "character":
            tokens = [c.encode() for c in plain.decode()]
        else:
            tokens = plain.split() if self.split else [plain]
        several = range(2, (self.ngrams or 1) + 1)
        return tokens + [b" ".join(tokens[i : i + n])
                         for n in several for i in range(len(tokens) - n + 1)]  # fmt: skip
