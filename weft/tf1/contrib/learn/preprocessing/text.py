"""`VocabularyProcessor`: documents as lists of words' numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

__all__ = ["CategoricalVocabulary", "VocabularyProcessor", "tokenizer"]

Array = np.ndarray[Any, Any]
_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each document."""
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """The numbers of words; 0 is the unknown one.

    Args:
        unknown_token: the word with number 0.
        support_reverse: whether words can be asked by their numbers.
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown = unknown_token
        self._mapping: dict[str, int] = {unknown_token: 0}
        self._names = [unknown_token]
        self._counts: dict[str, int] = {}
        self._frozen, self._reverse = False, support_reverse

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Whether new words get the number 0."""
        self._frozen = freeze

    def get(self, category: str) -> int:
        """The number of a word; a new one, unless frozen."""
        if category not in self._mapping:
            if self._frozen:
                return 0
            self._mapping[category] = len(self._mapping)
            self._names.append(category)
        return self._mapping[category]

    def add(self, category: str, count: int = 1) -> None:
        """Counts a word."""
        self.get(category)
        self._counts[category] = self._counts.get(category, 0) + count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keeps the words that occur more than `min_frequency` times, by how often they do."""
        by_count = sorted(self._counts.items(), key=lambda x: x[0])
        by_count.sort(key=lambda x: x[1], reverse=True)
        kept = [
            word for word, n in by_count
            if n > min_frequency and (max_frequency < 0 or n < max_frequency)
        ]  # fmt: skip
        self._names = [self._unknown, *kept]
        self._mapping = {word: n for n, word in enumerate(self._names)}
        self._counts = {word: self._counts[word] for word in kept}

    def reverse(self, class_id: int) -> str:
        """The word with a number.

        Raises:
            ValueError: the vocabulary does not keep them.
        """
        if not self._reverse:
            raise ValueError("reverse: the vocabulary was made with support_reverse=False")
        return self._names[class_id]


class VocabularyProcessor:
    """Documents as rows of words' numbers, cut or filled with 0.

    Args:
        max_document_length: the length of the rows.
        min_frequency: words that occur at most so often have number 0.
        vocabulary: the numbers; those of `fit` by default.
        tokenizer_fn: a function from documents to lists of words.

    >>> processor = VocabularyProcessor(4)
    >>> [row.tolist() for row in processor.fit_transform(["a b", "b c d"])]
    [[1, 2, 0, 0], [2, 3, 4, 0]]
    """

    def __init__(
        self, max_document_length: int, min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[Iterable[str]]] | None = None,
    ) -> None:  # fmt: skip
        self.max_document_length, self.min_frequency = max_document_length, min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of documents."""
        del unused_y
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Iterable[str], unused_y: Any = None) -> Iterator[Array]:
        """Learns the words, then gives the rows."""
        documents = list(raw_documents)
        self.fit(documents, unused_y)
        return self.transform(documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[Array]:
        """A row for each document, int64."""
        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for n, word in enumerate(words):
                if n >= self.max_document_length:
                    break
                row[n] = self.vocabulary_.get(word)
            yield row

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """The words of rows, with spaces between them."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(int(n)) for n in row)

    def save(self, filename: str) -> None:
        """Writes the words and settings as JSON (TensorFlow writes a pickle)."""
        stored = {"length": self.max_document_length, "least": self.min_frequency,
                  "words": self.vocabulary_._names}  # fmt: skip  # pyright: ignore[reportPrivateUsage]
        with open(filename, "w", encoding="utf-8") as file:
            json.dump(stored, file)

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """What `save` wrote."""
        with open(filename, encoding="utf-8") as file:
            stored = json.load(file)
        found = cls(stored["length"], stored["least"])
        for word in stored["words"][1:]:
            found.vocabulary_.get(word)
        found.vocabulary_.freeze()
        return found
