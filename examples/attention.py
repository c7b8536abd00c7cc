"""A TensorFlow 1 translator with attention; only the import differs from TensorFlow's.

It turns dates such as "03 Mar 21" into "21-03-03", letter by letter. Training feeds the correct
letters (`TrainingHelper`); `BeamSearchDecoder` translates. Prints the fraction of test dates and of
their letters that are correct, and three examples. On 2 cores: 10 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from common import VOCABULARY, options
from translation import SOURCE, START, TARGET, make_pairs

import weft.tf1 as tf

WIDTH, BEAMS, BATCH = 64, 4, 64
END = ord(START)  # begins and ends a text
seq2seq = tf.contrib.seq2seq


def encode(source: Any, lengths: Any, table: Any) -> tuple[Any, Any]:
    """The encoder's output for each letter, and its final states in both directions, joined."""
    embedded = tf.nn.embedding_lookup(table, source)
    forward, backward = (tf.nn.rnn_cell.GRUCell(WIDTH // 2) for _ in range(2))
    outputs, states = tf.nn.bidirectional_dynamic_rnn(
        forward, backward, embedded, lengths, dtype=tf.float32
    )
    return tf.concat(outputs, 2), tf.concat(states, 1)


def make_cell(memory: Any, lengths: Any) -> Any:
    """The decoder's cell, which attends to the memory."""
    mechanism = seq2seq.LuongAttention(WIDTH, memory, lengths, scale=True)
    cell = tf.nn.rnn_cell.GRUCell(WIDTH)
    return seq2seq.AttentionWrapper(cell, mechanism, attention_layer_size=WIDTH)


class Translator:
    """The graph: placeholders, a training operation, and the texts that beam search finds."""

    def __init__(self, steps: int) -> None:
        self.source = tf.placeholder(tf.int32, [None, SOURCE])
        self.target = tf.placeholder(tf.int32, [None, TARGET + 2])  # between two START letters
        lengths = tf.fill([tf.shape(self.source)[0]], SOURCE)
        table = tf.get_variable("table", [VOCABULARY, WIDTH])
        memory, state = encode(self.source, lengths, table)
        out = tf.layers.Dense(VOCABULARY, name="out")
        with tf.variable_scope("decode"):
            self.train, self.loss = self._training(memory, state, lengths, table, out, steps)
        with tf.variable_scope("decode", reuse=True):
            self.found = self._search(memory, state, lengths, table, out)

    def _training(
        self, memory: Any, state: Any, lengths: Any, table: Any, out: Any, steps: int
    ) -> tuple[Any, Any]:
        batch = tf.shape(self.source)[0]
        cell = make_cell(memory, lengths)
        first = cell.zero_state(batch, tf.float32).clone(cell_state=state)
        letters = tf.nn.embedding_lookup(table, self.target[:, :-1])
        helper = seq2seq.TrainingHelper(letters, tf.fill([batch], TARGET + 1))
        decoder = seq2seq.BasicDecoder(cell, helper, first, out)
        outputs, _, _ = seq2seq.dynamic_decode(decoder)
        weights = tf.ones([batch, TARGET + 1])
        loss = seq2seq.sequence_loss(outputs.rnn_output, self.target[:, 1:], weights)
        variables = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
        step = tf.train.get_or_create_global_step()
        rate = tf.train.cosine_decay(5e-3, step, steps)
        pairs = zip(gradients, variables, strict=True)
        return tf.train.AdamOptimizer(rate).apply_gradients(pairs, step), loss

    def _search(self, memory: Any, state: Any, lengths: Any, table: Any, out: Any) -> Any:
        batch = tf.shape(self.source)[0]
        memory, state, lengths = seq2seq.tile_batch((memory, state, lengths), BEAMS)
        cell = make_cell(memory, lengths)
        first = cell.zero_state(batch * BEAMS, tf.float32).clone(cell_state=state)
        start = tf.fill([batch], END)
        decoder = seq2seq.BeamSearchDecoder(cell, table, start, END, first, BEAMS, out)
        return seq2seq.dynamic_decode(decoder, maximum_iterations=TARGET + 2)[0].predicted_ids


def text_of(codes: np.ndarray[Any, Any]) -> str:
    """ASCII codes as text."""
    return "".join(map(chr, codes.tolist())).strip()


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train, measure, show."""
    chosen = options(__doc__, steps=300).parse_args(arguments)
    sources, targets = (x.numpy() for x in make_pairs(20_000, seed=0))
    targets = np.pad(targets, [(0, 0), (0, 1)], constant_values=END)
    draw = np.random.default_rng(0)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        model = Translator(chosen.steps)
        session.run(tf.global_variables_initializer())
        for step in range(1, chosen.steps + 1):
            picked = draw.integers(0, len(sources), BATCH)
            feeds = {model.source: sources[picked], model.target: targets[picked]}
            loss = session.run([model.loss, model.train], feeds)[0]
            if step % 50 == 0:
                print(f"step {step:4}  loss {loss:.3f}")
        sources, targets = (x.numpy() for x in make_pairs(500, seed=1))
        found = session.run(model.found, {model.source: sources})[:, :TARGET, 0]
    right = found == targets[:, 1:]
    exact, letters = float(right.all(1).mean()), float(right.mean())
    print(f"exact matches {exact:.3f}, letters {letters:.3f}")
    for i in range(3):
        print(f"{text_of(sources[i])} -> {text_of(found[i])}")
    return exact, letters


if __name__ == "__main__":
    main()
