"""`Tokenizer`: numbers for words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail

FILTERS: Final = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(
    text: str, filters: str = FILTERS, lower: bool = True, split: str = " "
) -> list[str]:
    """The words of a text."""
    text = text.lower() if lower else text
    return [
        w for w in text.translate(str.maketrans(dict.fromkeys(filters, split))).split(split) if w
    ]


class Tokenizer:
    """Numbers for words, from 1 on, the most frequent first.

    Args:
        num_words: only numbers below it are used, including 0, which is reserved.
        filters: characters that separate words, besides `split`.
        lower: whether to convert texts to lower case.
        char_level: whether characters are the tokens.
        oov_token: the token for unknown words.

    >>> tokenizer = Tokenizer()
    >>> tokenizer.fit_on_texts(["the cat", "the dog"])
    >>> tokenizer.texts_to_sequences(["the dog barks"])
    [[1, 3]]
    """

    def __init__(
        self, num_words: int | None = None, filters: str = FILTERS, lower: bool = True,
        split: str = " ", char_level: bool = False, oov_token: str | None = None,
    ) -> None:  # fmt: skip
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token = char_level, oov_token
        self.word_counts: Counter[str] = Counter()
        self.word_docs: Counter[str] = Counter()
        self.document_count = 0
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> list[str]:
        if isinstance(text, list | tuple):
            return [str(w).lower() if self.lower else str(w) for w in text]
        if self.char_level:
            return list(text.lower() if self.lower else text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Count the words of texts, and number them."""
        for text in texts:
            words = self._words(text)
            self.document_count += 1
            self.word_counts.update(words)
            self.word_docs.update(set(words))
        first = [] if self.oov_token is None else [self.oov_token]
        ordered = [*first, *[w for w, _ in self.word_counts.most_common()]]
        self.word_index = {w: i for i, w in enumerate(dict.fromkeys(ordered), 1)}
        self.index_word = {i: w for w, i in self.word_index.items()}

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """Texts as lists of numbers."""
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts: Iterable[Any]) -> Iterator[list[int]]:
        """Each text as a list of numbers."""
        other = None if self.oov_token is None else self.word_index.get(self.oov_token)
        for text in texts:
            found = [self.word_index.get(w, other) for w in self._words(text)]
            known = [other if i is not None and self._is_rare(i) else i for i in found]
            yield [i for i in known if i is not None]

    def _is_rare(self, number: int) -> bool:
        return self.num_words is not None and number >= self.num_words

    def sequences_to_texts(self, sequences: Iterable[Sequence[int]]) -> list[str]:
        """Lists of numbers as texts."""
        return [" ".join(self.index_word[i] for i in s if i in self.index_word) for s in sequences]

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> Any:
        """A row for each text, a column for each number; see `sequences_to_matrix`."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: Sequence[Sequence[int]], mode: str = "binary") -> Any:
        """A row for each list: whether, how often, or with which frequency a number occurs.

        Args:
            mode: `"binary"`, `"count"` or `"freq"`.

        Raises:
            ArgumentError: the mode is unknown.
        """
        if mode not in ("binary", "count", "freq"):
            raise fail(
                ArgumentError,
                f"sequences_to_matrix: expected mode binary, count or freq, got {mode!r}",
            )
        wide = self.num_words or len(self.word_index) + 1
        found = np.zeros((len(sequences), wide))
        for row, numbers in zip(found, sequences, strict=True):
            for number, count in Counter(n for n in numbers if n < wide).items():
                row[number] = {"binary": 1, "count": count, "freq": count / len(numbers)}[mode]
        return found
