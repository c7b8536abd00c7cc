"""`tf.distributions` beside SciPy."""

import numpy as np
import pytest
from scipy import stats

import weft.tf1 as tf

D = tf.distributions


def run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


def test_log_densities_entropies_and_divergences():
    with tf.Graph().as_default():
        p, q = D.Normal([0.0, 1.0], [[1.0], [2.0]]), D.Normal(0.5, 3.0)
        u = D.Uniform([0.0, 1.0], 3.0)
        b, c = D.Bernoulli(probs=[0.2, 0.7]), D.Bernoulli(logits=[0.3, -2.0])
        k, m = D.Categorical(logits=[[1.0, 2.0, 3.0]]), D.Categorical(probs=[[0.2, 0.3, 0.5]])
        found = run([
            p.log_prob([0.3, 0.4]), p.entropy(), p.kl_divergence(q), u.log_prob([2.0, 0.5]),
            D.kl_divergence(b, c), b.log_prob([1, 0]), k.log_prob([[2], [0]]), k.kl_divergence(m),
        ])  # fmt: skip
        with pytest.raises(ValueError, match="Normal and Uniform"):
            p.kl_divergence(u)
        with pytest.raises(ValueError, match="one of logits and probs"):
            D.Bernoulli()
    loc, scale = np.array([0.0, 1.0]), np.array([[1.0], [2.0]])
    one, two = np.array([0.2, 0.7]), 1 / (1 + np.exp(-np.array([0.3, -2.0])))
    three = np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum()
    expected = [
        stats.norm(loc, scale).logpdf([0.3, 0.4]),
        stats.norm(loc, scale).entropy(),
        np.log(3 / scale) + (scale**2 + (loc - 0.5) ** 2) / 18 - 0.5,
        [-np.log(3), -np.inf],
        one * np.log(one / two) + (1 - one) * np.log((1 - one) / (1 - two)),
        np.log([0.2, 0.3]),
        np.log(three[[2, 0]])[:, None],
        [stats.entropy(three, [0.2, 0.3, 0.5])],
    ]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, np.broadcast_to(theirs, ours.shape), rtol=2e-5)


def test_samples_have_shapes_means_and_gradients():
    with tf.Graph().as_default():
        loc = tf.constant([0.0, 10.0])
        kinds = [D.Normal(loc, 1.0), D.Uniform(loc, 20.0), D.Bernoulli(probs=[0.2, 0.7]),
                 D.Categorical(probs=[[0.2, 0.8], [0.5, 0.5]])]  # fmt: skip
        drawn = [kind.sample(4000, seed=3) for kind in kinds]
        assert [x.shape.as_list() for x in drawn] == [[4000, 2]] * 4
        slope = tf.gradients(tf.reduce_mean(kinds[0].sample([10])), loc)[0]
        found, by_loc = run([drawn, slope])
    means = [[0, 10], [10, 15], [0.2, 0.7], [0.8, 0.5]]
    for x, mean in zip(found, means, strict=True):
        np.testing.assert_allclose(x.mean(0), mean, atol=5 * x.std() / 4000**0.5)
    np.testing.assert_allclose(by_loc, [0.5, 0.5], rtol=1e-6)
