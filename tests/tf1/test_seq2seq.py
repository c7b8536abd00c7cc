"""tf.contrib.seq2seq: attention against formulas, decoding by hand, exhaustive beam search."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError, TreeError

S = tf.contrib.seq2seq


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(2)
        yield session


def ready(session: Any) -> dict[str, Any]:
    """The initial values of all variables, by name."""
    session.run(tf.global_variables_initializer())
    found = tf.trainable_variables()
    return dict(zip([v.op.name for v in found], session.run(found), strict=True))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


RANDOM = np.random.default_rng(0)
MEMORY = RANDOM.normal(size=(2, 4, 3)).astype(np.float32)
QUERY = RANDOM.normal(size=(2, 5)).astype(np.float32)
LENGTHS = [4, 2]
INSIDE = np.arange(4) < np.array(LENGTHS)[:, None]


def expected_scores(values: dict[str, Any], kind: str, keys: Any) -> Any:
    if kind == "luong":
        return values["luong_attention/attention_g"] * np.einsum("bd,btd->bt", QUERY, keys)
    name = "bahdanau_attention/"
    v, g, b = (values[name + x] for x in ("attention_v", "attention_g", "attention_b"))
    asked = QUERY @ values[name + "query_layer/kernel"]
    return np.tanh(keys + asked[:, None] + b) @ (g * v / np.sqrt((v * v).sum()))


@pytest.mark.parametrize("kind", ["luong", "bahdanau"])
def test_alignments_are_their_formulas(session: Any, kind: str) -> None:
    if kind == "luong":
        mechanism = S.LuongAttention(5, MEMORY, LENGTHS, scale=True)
    else:
        mechanism = S.BahdanauAttention(6, MEMORY, LENGTHS, normalize=True)
    found, state = mechanism(tf.constant(QUERY), mechanism.initial_state(2, tf.float32))
    values = ready(session)
    masked = np.where(INSIDE[..., None], MEMORY, 0)
    keys = masked @ values["memory_layer/kernel"]
    score = np.where(INSIDE, expected_scores(values, kind, keys), -np.inf)
    np.testing.assert_allclose(session.run(found), softmax(score), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(*session.run([found, state]))
    np.testing.assert_array_equal(session.run(mechanism.values), masked)


def test_modes_of_monotonic_attention(session: Any) -> None:
    p = RANDOM.uniform(0.1, 0.9, (3, 6)).astype(np.float32)
    before = softmax(RANDOM.normal(size=(3, 6))).astype(np.float32)
    reached, expected = np.zeros(3), []
    for t in range(6):
        stay = 1.0 if t == 0 else 1 - p[:, t - 1]
        reached = stay * reached + before[:, t]
        expected.append(p[:, t] * reached)
    for mode in ("recursive", "parallel"):
        found = session.run(S.monotonic_attention(p, before, mode))
        np.testing.assert_allclose(found, np.stack(expected, 1), rtol=1e-4)
    hard = S.monotonic_attention([[0.0, 0.0, 1.0, 0.0, 1.0]], [[0.0, 1.0, 0.0, 0.0, 0.0]], "hard")
    assert session.run(hard).tolist() == [[0, 0, 1, 0, 0]]
    for mechanism in (S.BahdanauMonotonicAttention, S.LuongMonotonicAttention):
        asked = mechanism(5, MEMORY, LENGTHS, score_bias_init=-1.0, sigmoid_noise=0.1)
        found = asked(tf.constant(QUERY), asked.initial_state(2, tf.float32))[0]
        session.run(tf.global_variables_initializer())
        weights = session.run(found)
        assert (weights >= 0).all() and (weights.sum(1) <= 1).all() and not weights[1, 2:].any()
    with pytest.raises(ArgumentError, match="mode: expected 'recursive'"):
        S.monotonic_attention(p, before, "soft")


def test_a_wrapper_in_two_steps(session: Any) -> None:
    cell = tf.nn.rnn_cell.BasicRNNCell(5)
    wrapper = S.AttentionWrapper(
        cell, [S.LuongAttention(5, MEMORY), S.LuongAttention(5, MEMORY, name="other")],
        attention_layer_size=[2, 3], alignment_history=True,
    )  # fmt: skip
    x = RANDOM.normal(size=(2, 2, 4)).astype(np.float32)
    state = wrapper.zero_state(2, tf.float32).clone(cell_state=tf.constant(QUERY))
    for t in range(2):
        output, state = wrapper(tf.constant(x[:, t]), state)
    values = ready(session)
    rows = session.run([output, state.attention, *[a.stack() for a in state.alignment_history]])
    h, attention, weights = QUERY, np.zeros((2, 5)), []
    for t in range(2):
        inputs = np.concatenate([x[:, t], attention, h], 1)
        name = "attention_wrapper/basic_rnn_cell/"
        h = np.tanh(inputs @ values[name + "kernel"] + values[name + "bias"])
        parts, used = [], []
        for end in ("", "_1"):
            keys = MEMORY @ values[f"memory_layer{end}/kernel"]
            used.append(softmax(np.einsum("bd,btd->bt", h, keys)))
            context = np.einsum("bt,btd->bd", used[-1], MEMORY)
            layer = values[f"attention_wrapper/attention_layer{end}/kernel"]
            parts.append(np.concatenate([h, context], 1) @ layer)
        attention = np.concatenate(parts, 1)
        weights.append(used)
    for found, wanted in zip(rows, [attention] * 2 + list(np.swapaxes(weights, 0, 1)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert (wrapper.output_size, wrapper.state_size.alignments) == (5, (4, 4))


def test_training_is_dynamic_rnn(session: Any) -> None:
    x, lengths = tf.placeholder(tf.float32, [None, None, 4]), tf.placeholder(tf.int32, [None])
    cell, layer = tf.nn.rnn_cell.GRUCell(5), tf.layers.Dense(7, name="out")
    first = cell.zero_state(tf.shape(x)[0], tf.float32)
    helper = S.TrainingHelper(x, lengths)
    decoder = S.BasicDecoder(cell, helper, first, layer)
    outputs, state, found = S.dynamic_decode(decoder, impute_finished=True)
    ys, last = tf.nn.dynamic_rnn(cell, x, lengths, initial_state=first)
    plain = layer(ys) * tf.expand_dims(tf.sequence_mask(lengths, dtype=tf.float32), 2)
    variables = tf.trainable_variables()
    slopes = [tf.gradients(tf.reduce_sum(y**2), variables) for y in (outputs.rnn_output, plain)]
    major = S.dynamic_decode(decoder, True, True, maximum_iterations=2)[0]
    names = sorted(ready(session))
    parts = [f"{a}/{b}" for a in ("candidate", "gates") for b in ("bias", "kernel")]
    out = ["decoder/out/bias", "decoder/out/kernel"]
    assert names == [*[f"decoder/gru_cell/{part}" for part in parts], *out]
    feeds = {x: RANDOM.normal(size=(3, 5, 4)), lengths: [5, 1, 3]}
    a, b, ids, c, d, n, (g, h), m = session.run(
        [outputs.rnn_output, plain, outputs.sample_id, state, last, found, slopes,
         major.rnn_output], feeds
    )  # fmt: skip
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(c, d, rtol=1e-5)
    for p, q in zip(g, h, strict=True):
        np.testing.assert_allclose(p, q, rtol=1e-3, atol=1e-4)
    assert n.tolist() == [5, 1, 3] and ids.dtype == np.int32
    np.testing.assert_array_equal(ids[0], a[0].argmax(-1))
    assert not ids[1, 1:].any()
    np.testing.assert_allclose(m, np.swapaxes(a, 0, 1)[:2], rtol=1e-5, atol=1e-6)
    assert m.shape == (2, 3, 7)


CHANCES = np.log(softmax(RANDOM.normal(size=(5, 5)) * 2)).astype(np.float32)
END = 4


class Chain(tf.nn.rnn_cell.RNNCell):
    """Logits that depend on the last token alone, which is the input; the state counts."""

    @property
    def state_size(self) -> int:
        return 1

    @property
    def output_size(self) -> int:
        return 5

    def call(self, inputs: Any, state: Any) -> Any:
        return tf.matmul(inputs, tf.constant(CHANCES)), state + 1


def embed(ids: Any) -> Any:
    return tf.one_hot(ids, 5)


def test_greedy_decoding(session: Any) -> None:
    helper = S.GreedyEmbeddingHelper(embed, [0, 1, 2], END)
    cell = Chain()
    decoder = S.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
    outputs, state, lengths = S.dynamic_decode(decoder, impute_finished=True, maximum_iterations=6)
    ids, counts, n = session.run([outputs.sample_id, state, lengths])
    for row, token in enumerate([0, 1, 2]):
        wanted: list[int] = []
        while len(wanted) < 6 and END not in wanted:
            token = int(CHANCES[token].argmax())
            wanted.append(token)
        assert ids[row].tolist() == wanted + [0] * (6 - len(wanted))
        assert n[row] == counts[row, 0] == len(wanted)
    whole = session.run(S.dynamic_decode(decoder, impute_finished=True)[0].sample_id)
    assert np.array_equal(whole, ids[:, : n.max()])


def test_sampling_and_functions_of_your_own(session: Any) -> None:
    cell = Chain()
    many = 400
    first = cell.zero_state(many, tf.float32)
    helper = S.SampleEmbeddingHelper(embed, tf.zeros([many], tf.int32), END, 0.5, seed=1)
    drawn = S.dynamic_decode(S.BasicDecoder(cell, helper, first), maximum_iterations=1)[0]
    rates = np.bincount(session.run(drawn.sample_id)[:, 0], minlength=5) / many
    np.testing.assert_allclose(rates, softmax(CHANCES[0] * 2), atol=0.1)
    own = S.CustomHelper(
        lambda: (tf.fill([2], False), embed([0, 1])),
        lambda time, outputs, state: tf.argmax(outputs, -1, output_type=tf.int32),
        lambda time, outputs, state, sample_ids: (time + 1 >= [3, 2], embed(sample_ids), state),
    )
    same = S.InferenceHelper(
        lambda y: tf.one_hot(tf.argmax(y, -1), 5), [5], tf.float32, embed([0, 1]),
        lambda ids: tf.fill([2], False),
    )  # fmt: skip
    start = cell.zero_state(2, tf.float32)
    a = S.dynamic_decode(S.BasicDecoder(cell, own, start))
    b = S.dynamic_decode(S.BasicDecoder(cell, same, start), maximum_iterations=3)
    (ids, lengths), hot = session.run([(a[0].sample_id, a[2]), b[0].sample_id])
    assert lengths.tolist() == [3, 2] and ids.shape == (2, 3)
    np.testing.assert_array_equal(ids, hot.argmax(-1))


def test_scheduled_sampling(session: Any) -> None:
    cell, x = Chain(), np.eye(5, dtype=np.float32)[[[0, 1, 2]] * 50]
    found = {}
    for chance in (0.0, 0.5, 1.0):
        helper = S.ScheduledEmbeddingTrainingHelper(x, [3] * 50, embed, chance, seed=1)
        decoder = S.BasicDecoder(cell, helper, cell.zero_state(50, tf.float32))
        found[chance] = session.run(S.dynamic_decode(decoder)[0])
    assert (found[0.0].sample_id == -1).all() and (found[1.0].sample_id >= 0).all()
    assert 0.3 < (found[0.5].sample_id >= 0).mean() < 0.7
    np.testing.assert_allclose(found[0.0].rnn_output, CHANCES[[[0, 1, 2]] * 50])
    token = np.where(found[0.5].sample_id >= 0, found[0.5].sample_id, [0, 1, 2])
    true = np.where(found[0.5].sample_id >= 0, token, [1, 2, 0])[:, :-1]
    np.testing.assert_allclose(found[0.5].rnn_output[:, 1:], CHANCES[true], rtol=1e-5)


@pytest.mark.parametrize("time_major", [False, True])
def test_scheduled_outputs(session: Any, time_major: bool) -> None:
    """Each next input is the true one or the outputs, with the auxiliary one of its step behind."""
    random, batch, steps = np.random.default_rng(0), 40, 4
    x, more = (random.standard_normal((batch, steps, n)).astype(np.float32) for n in (3, 2))
    feeds = [np.swapaxes(a, 0, 1) if time_major else a for a in (x, more)]
    cell = tf.nn.rnn_cell.BasicRNNCell(3)
    for chance in (0.0, 0.5, np.arange(batch) % 2 * 1.0):
        helper = S.ScheduledOutputTrainingHelper(
            feeds[0], [steps] * batch, np.float32(chance), time_major, seed=1,
            next_inputs_fn=lambda y: y * 2, auxiliary_inputs=feeds[1],
        )  # fmt: skip
        decoder = S.BasicDecoder(cell, helper, cell.zero_state(batch, tf.float32))
        outputs = S.dynamic_decode(decoder)[0]
        session.run(tf.global_variables_initializer())
        (y, ids), weights = session.run(
            [(outputs.rnn_output, outputs.sample_id), tf.trainable_variables()]
        )
        state, fed = np.zeros((batch, 3), np.float32), x[:, 0]
        for t in range(steps):
            rows = np.concatenate([fed, more[:, t], state], 1)
            state = np.tanh(rows @ weights[0] + weights[1])
            np.testing.assert_allclose(y[:, t], state, rtol=1e-4, atol=1e-5)
            fed = np.where(ids[:, t, None] > 0, state * 2, x[:, min(t + 1, steps - 1)])
        assert abs(ids.mean() - np.mean(chance)) < 0.15
        if np.ndim(chance):
            np.testing.assert_array_equal(ids, np.repeat(chance[:, None], steps, 1))


def test_a_matrix_of_probabilities_raises() -> None:
    with pytest.raises(ShapeError, match="ScheduledOutputTrainingHelper: expected sampling_prob"):
        S.ScheduledOutputTrainingHelper(np.zeros((2, 3, 4), np.float32), [3, 3], [[0.5]])


def every_text(start: int, steps: int, weight: float) -> list[tuple[float, list[int]]]:
    """All texts of at most `length` tokens, with their scores, the best first."""
    found: list[tuple[float, list[int]]] = []
    for text in itertools.product(range(5), repeat=steps):
        end = text.index(END) + 1 if END in text else steps
        if any(token != END for token in text[end:]):
            continue
        pairs = zip((start, *text[: end - 1]), text[:end], strict=True)
        total = sum(float(CHANCES[a, b]) for a, b in pairs)
        # As in TensorFlow, the end token does not count in the step in which it comes.
        length = end - (text[end - 1] == END and end == steps)
        found.append((total / ((5 + length) / 6) ** weight, list(text)))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("weight", [0.0, 1.5])
def test_beam_search_finds_the_best(session: Any, weight: float) -> None:
    cell, beams, steps = Chain(), 60, 3
    decoder = S.BeamSearchDecoder(
        cell, embed, [0, 3], END, cell.zero_state(2 * beams, tf.float32), beams,
        length_penalty_weight=weight,
    )  # fmt: skip
    outputs, state, lengths = S.dynamic_decode(decoder, maximum_iterations=steps)
    ids, scores, chances, counts, n = session.run(
        [outputs.predicted_ids, outputs.beam_search_decoder_output.scores, state.log_probs,
         state.lengths, lengths]
    )  # fmt: skip
    assert ids.shape == (2, steps, beams) and n.shape == (2, beams)
    for row, start in enumerate([0, 3]):
        best = every_text(start, steps, weight)[:10]
        np.testing.assert_allclose(scores[row, -1, :10], [s for s, _ in best], rtol=1e-4)
        assert ids[row, :, :10].T.tolist() == [text for _, text in best]
        text = best[0][1]
        assert counts[row, 0] == (text.index(END) + 1 if END in text else steps)
    assert (np.diff(chances[0]) <= 1e-6).all() or weight


def test_beam_search_keeps_histories_in_order(session: Any) -> None:
    beams = 3
    memory = S.tile_batch(tf.constant(MEMORY), beams)
    attention = S.BahdanauAttention(6, memory)
    cell = S.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(5), attention, attention_layer_size=5, alignment_history=True
    )
    decoder = S.BeamSearchDecoder(
        cell, tf.get_variable("table", [5, 5]), [0, 1], END, cell.zero_state(6, tf.float32), beams,
        output_layer=tf.layers.Dense(5), coverage_penalty_weight=0.3, length_penalty_weight=0.6,
    )  # fmt: skip
    outputs, state, _ = S.dynamic_decode(decoder, maximum_iterations=5)
    ready(session)
    ids, history, heard = session.run(
        [outputs.predicted_ids, state.cell_state.alignment_history,
         state.accumulated_attention_probs]
    )  # fmt: skip
    assert ids.shape == (2, 5, 3) and history.shape == (5, 6, 4) and heard.shape == (2, 3, 4)
    np.testing.assert_allclose(history.sum(2), 1, rtol=1e-5)
    plain = tf.nn.rnn_cell.GRUCell(5)
    with pytest.raises(ArgumentError, match="a cell with attention"):
        S.BeamSearchDecoder(
            plain, embed, [0], END, plain.zero_state(3, tf.float32), 3, coverage_penalty_weight=1.0
        ).initialize()


def test_trees_and_tiles(session: Any) -> None:
    # TensorFlow's own example: kernel test GatherTreeOne
    ids = np.transpose([[[1, 2, 3], [4, 5, 6], [7, 8, 9], [-1, -1, -1]]], [1, 0, 2])
    parents = np.transpose([[[0, 0, 0], [0, 1, 1], [2, 1, 2], [-1, -1, -1]]], [1, 0, 2])
    found = session.run(S.gather_tree(ids, parents, [3], 10))
    wanted = np.transpose([[[2, 2, 2], [6, 5, 6], [7, 8, 9], [10, 10, 10]]], [1, 0, 2])
    np.testing.assert_array_equal(found, wanted)
    values = session.run(S.gather_tree_from_array(ids, np.maximum(parents, 0), [[3, 3, 3]]))
    np.testing.assert_array_equal(values[:3], wanted[:3])
    tiled = session.run(S.tile_batch({"a": tf.constant([[1], [2]]), "b": tf.constant([3, 4])}, 2))
    assert tiled["a"].tolist() == [[1], [1], [2], [2]] and tiled["b"].tolist() == [3, 3, 4, 4]


def test_sequence_loss(session: Any) -> None:
    x, y = RANDOM.normal(size=(2, 3, 4)).astype(np.float32), np.array([[0, 1, 2], [3, 0, 0]])
    w = np.array([[1, 1, 1], [0.5, 0, 0]], np.float32)
    each = -np.take_along_axis(np.log(softmax(x)), y[..., None], 2)[..., 0] * w
    cases = {
        (True, True, False, False): each.sum() / w.sum(),
        (True, False, False, False): each.sum(1) / w.sum(1),
        (False, True, False, False): each.sum(0) / (w.sum(0) + 1e-12),
        (False, False, True, True): each.sum() / 4,
        (False, False, False, False): each,
    }
    for options, wanted in cases.items():
        found = session.run(S.sequence_loss(x, y, w, *options))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
    doubled = S.sequence_loss(
        x, y, w, softmax_loss_function=lambda labels, logits: tf.to_float(labels) * 2
    )
    np.testing.assert_allclose(session.run(doubled), (2 * y * w).sum() / w.sum(), rtol=1e-6)
    with pytest.raises(ArgumentError, match="averaged or summed, not both"):
        S.sequence_loss(x, y, w, sum_over_batch=True)
    with pytest.raises(ShapeError, match="logits: expected rank 3"):
        S.sequence_loss(x[0], y, w)


def test_errors(session: Any) -> None:
    cell = tf.nn.rnn_cell.GRUCell(5)
    with pytest.raises(ShapeError, match=r"of 2 and 6; .* tile_batch|got 2 and 6"):
        S.AttentionWrapper(cell, S.LuongAttention(5, MEMORY), initial_cell_state=tf.zeros([6, 5]))
    with pytest.raises(ShapeError, match=r"queries as deep as keys \(num_units\), got 5 and 7"):
        S.LuongAttention(7, MEMORY)(tf.constant(QUERY), None)
    with pytest.raises(ArgumentError, match="expected 1 attention layers, one a mechanism, got 2"):
        S.AttentionWrapper(cell, S.LuongAttention(5, MEMORY), [3, 4])
    with pytest.raises(ShapeError, match=r"states of 2 \* 3 rows"):
        S.BeamSearchDecoder(cell, embed, [0, 1], END, tf.zeros([2, 5]), 3)
    with pytest.raises(ArgumentError, match="expected a Decoder"):
        S.dynamic_decode(cell)

    class Wrong(S.BasicDecoder):
        def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
            outputs, state, more, done = super().step(time, inputs, state)
            return outputs, (state, state), more, done

    helper = S.TrainingHelper(tf.zeros([2, 3, 4]), [3, 1])
    with pytest.raises(TreeError, match="gives state in the structure"):
        S.dynamic_decode(Wrong(cell, helper, cell.zero_state(2, tf.float32)))
