"""`tf.distributions`: normal, uniform, Bernoulli and categorical distributions of graph tensors."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import weft.tf1 as tf
from weft.documentation import Reads
from weft.errors import ArgumentError
from weft.ops.random import density
from weft.tf1.framework.graph import emit, fail

__all__ = [
    "FULLY_REPARAMETERIZED", "NOT_REPARAMETERIZED", "Bernoulli", "Categorical", "Distribution",
    "Normal", "Uniform", "kl_divergence",
]  # fmt: skip

FULLY_REPARAMETERIZED: Final = "FULLY_REPARAMETERIZED"
NOT_REPARAMETERIZED: Final = "NOT_REPARAMETERIZED"


class Distribution:
    """A distribution, or a batch of them.

    Attributes:
        reparameterization_type: whether samples have gradients by the parameters.

    Raises:
        ArgumentError: the other distribution of a divergence is of another class.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     p, q = tf.distributions.Normal(0.0, 1.0), tf.distributions.Normal(1.0, 1.0)
    ...     print(session.run([p.log_prob(0.0), p.kl_divergence(q)]))
    [np.float32(-0.9189385), np.float32(0.5)]
    """

    reparameterization_type: ClassVar[str] = NOT_REPARAMETERIZED

    def __init__(self, name: str, batch: Any, **parameters: Any) -> None:
        self.name, self.parameters = name, parameters
        self._batch = batch  # a tensor of the batch's shape

    batch_shape = Reads[Any]("_batch.shape", "The static shape of the batch.")

    event_shape: Any = property(lambda self: tf.TensorShape([]), doc="The shape of one value.")

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The shape of the batch."""
        return tf.shape(self._batch, name)

    def _shape(self, sample_shape: Any) -> Any:
        more = tf.reshape(tf.cast(sample_shape, tf.int32), [-1])
        return tf.concat([more, tf.shape(self._batch)], 0)

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Any:
        """Values, [sample_shape, batch_shape]."""
        with tf.name_scope(name):
            found = self._sample(self._shape(sample_shape), seed)
            known = None if tf.is_tensor(sample_shape) else sample_shape
            known = [known] if isinstance(known, int) else known
            if known is not None:
                found.set_shape(tf.TensorShape(known).concatenate(self._batch.shape))
            return found

    def prob(self, value: Any, name: str = "prob") -> Any:
        """The density or probability of values."""
        return tf.exp(self.log_prob(value), name)

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """The logarithm of the density or probability of values."""
        with tf.name_scope(name):
            return self._log_prob(value)

    def stddev(self, name: str = "stddev") -> Any:
        """The standard deviation."""
        return tf.sqrt(self.variance(), name)

    def entropy(self, name: str = "entropy") -> Any:
        """The entropy."""
        return self.cross_entropy(self, name)

    def cross_entropy(self, other: Any, name: str = "cross_entropy") -> Any:
        """Minus the mean of another's log density."""
        if type(other) is not type(self):
            kinds = f"{type(self).__name__} and {type(other).__name__}"
            raise fail(ArgumentError, f"cross_entropy: expected one class, got {kinds}")
        with tf.name_scope(name):
            return self._cross_entropy(other)

    def kl_divergence(self, other: Any, name: str = "kl_divergence") -> Any:
        """The Kullback-Leibler divergence from another."""
        return tf.subtract(self.cross_entropy(other), self.entropy(), name)

    def _sample(self, shape: Any, seed: int | None) -> Any:
        raise NotImplementedError

    def _log_prob(self, value: Any) -> Any:
        raise NotImplementedError

    def _cross_entropy(self, other: Any) -> Any:
        raise NotImplementedError

    def variance(self, name: str = "variance") -> Any:
        """The variance."""
        raise NotImplementedError


class Normal(Distribution):
    """The normal distribution.

    Args:
        loc: the mean.
        scale: the standard deviation.
        validate_args, allow_nan_stats: accepted.
        name: of the distribution.
    """

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:  # fmt: skip
        del validate_args, allow_nan_stats
        self.loc, self.scale = tf.convert_to_tensor(loc), tf.convert_to_tensor(scale)
        super().__init__(name, self.loc + tf.zeros_like(self.scale), loc=loc, scale=scale)

    def _sample(self, shape: Any, seed: int | None) -> Any:
        return tf.random_normal(shape, dtype=self.loc.dtype, seed=seed) * self.scale + self.loc

    def _log_prob(self, value: Any) -> Any:
        away = tf.subtract(value, self.loc)
        return emit("Sub", [away, self.scale], density.normal, name="log_prob")

    def _cross_entropy(self, other: Normal) -> Any:
        parts = [self.loc - other.loc, self.scale, other.scale]
        return emit("Sub", parts, density.normal_cross_entropy, name="cross_entropy")

    def mean(self, name: str = "mean") -> Any:
        """The mean."""
        return tf.identity(self._batch, name)

    mode = mean

    def variance(self, name: str = "variance") -> Any:
        """The variance."""
        return tf.square(self.scale + tf.zeros_like(self.loc), name)


class Uniform(Distribution):
    """The uniform distribution.

    Args:
        low: the least value.
        high: the bound, which does not count.
        validate_args, allow_nan_stats: accepted.
        name: of the distribution.
    """

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self, low: Any = 0.0, high: Any = 1.0, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Uniform",
    ) -> None:  # fmt: skip
        del validate_args, allow_nan_stats
        self.low, self.high = tf.convert_to_tensor(low), tf.convert_to_tensor(high)
        super().__init__(name, self.low + tf.zeros_like(self.high), low=low, high=high)

    def _sample(self, shape: Any, seed: int | None) -> Any:
        share = tf.random_uniform(shape, dtype=self.low.dtype, seed=seed)
        return share * (self.high - self.low) + self.low

    def _log_prob(self, value: Any) -> Any:
        given = [tf.convert_to_tensor(value, dtype=self.low.dtype.base_dtype), self.low, self.high]
        return emit("SelectV2", given, density.uniform, name="log_prob")

    def entropy(self, name: str = "entropy") -> Any:
        """The entropy."""
        return tf.log(self.high - self.low, name)


class Bernoulli(Distribution):
    """Ones with a probability, otherwise zeros.

    Args:
        logits: the logarithm of the odds.
        probs: the probability, in place of it.
        dtype: of samples.
        validate_args, allow_nan_stats: accepted.
        name: of the distribution.

    Raises:
        ArgumentError: not one of logits and probs is given.
    """

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: Any = "int32",
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Bernoulli",
    ) -> None:  # fmt: skip
        del validate_args, allow_nan_stats
        _require_one(name, logits, probs)
        self.dtype = tf.as_dtype(dtype)
        if logits is None:
            self.probs = tf.convert_to_tensor(probs)
            self.logits = emit("Logit", [self.probs], "logit", name="logits")
        else:
            self.logits = tf.convert_to_tensor(logits)
            self.probs = tf.sigmoid(self.logits)
        super().__init__(name, self.logits, logits=logits, probs=probs)

    def _sample(self, shape: Any, seed: int | None) -> Any:
        drawn = tf.random_uniform(shape, dtype=self.probs.dtype, seed=seed)
        return tf.cast(drawn < self.probs, self.dtype)

    def _log_prob(self, value: Any) -> Any:
        labels = tf.cast(value, self.logits.dtype.base_dtype)
        labels, logits = labels + tf.zeros_like(self.logits), self.logits + tf.zeros_like(labels)
        return -tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def _cross_entropy(self, other: Bernoulli) -> Any:
        p, logits = (
            self.probs + tf.zeros_like(other.logits),
            other.logits + tf.zeros_like(self.probs),
        )
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=p, logits=logits)

    def mean(self, name: str = "mean") -> Any:
        """The probability of one."""
        return tf.identity(self.probs, name)

    def mode(self, name: str = "mode") -> Any:
        """The likelier value."""
        return tf.cast(self.probs > 0.5, self.dtype, name)

    def variance(self, name: str = "variance") -> Any:
        """The variance."""
        return tf.multiply(self.probs, 1.0 - self.probs, name)


class Categorical(Distribution):
    """Classes from 0.

    Args:
        logits: logarithms of probabilities, of which only differences count; classes lie along the
            last axis.
        probs: the probabilities, in place of them.
        dtype: of samples.
        validate_args, allow_nan_stats: accepted.
        name: of the distribution.

    Raises:
        ArgumentError: not one of logits and probs is given.
    """

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: Any = "int32",
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Categorical",
    ) -> None:  # fmt: skip
        del validate_args, allow_nan_stats
        _require_one(name, logits, probs)
        self.dtype = tf.as_dtype(dtype)
        self.logits = tf.convert_to_tensor(logits) if probs is None else tf.log(probs)
        self.probs = tf.nn.softmax(self.logits)
        self.event_size = self.logits.shape.as_list()[-1]
        super().__init__(name, self.logits[..., 0], logits=logits, probs=probs)

    def _sample(self, shape: Any, seed: int | None) -> Any:
        rows = tf.reshape(self.logits, [-1, tf.shape(self.logits)[-1]])
        count = tf.reduce_prod(shape) // tf.maximum(tf.shape(rows)[0], 1)
        rows = tf.tile(rows, [count, 1])
        drawn = tf.multinomial(rows, 1, seed, output_dtype=self.dtype)
        return tf.reshape(drawn, shape)

    def _log_prob(self, value: Any) -> Any:
        classes = tf.convert_to_tensor(value)
        classes = classes + tf.zeros_like(self._batch, classes.dtype.base_dtype)
        logits = self.logits + tf.zeros_like(classes, self.logits.dtype.base_dtype)[..., None]
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)

    def _cross_entropy(self, other: Categorical) -> Any:
        p, logits = (
            self.probs + tf.zeros_like(other.logits),
            other.logits + tf.zeros_like(self.probs),
        )
        return tf.nn.softmax_cross_entropy_with_logits_v2(labels=p, logits=logits)

    def mode(self, name: str = "mode") -> Any:
        """The likeliest class."""
        return tf.argmax(self.logits, -1, name, output_type=self.dtype)


def _require_one(name: str, logits: Any, probs: Any) -> None:
    if (logits is None) == (probs is None):
        raise fail(ArgumentError, f"{name}: expected one of logits and probs")


def kl_divergence(
    distribution_a: Distribution, distribution_b: Distribution, allow_nan_stats: bool = True,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The Kullback-Leibler divergence of the first from the second, of one class.

    Args:
        distribution_a, distribution_b: two distributions.
        allow_nan_stats: accepted.
        name: of the operation.
    """
    del allow_nan_stats
    return distribution_a.kl_divergence(distribution_b, name or "kl_divergence")
