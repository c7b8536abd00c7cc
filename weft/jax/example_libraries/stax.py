"""`jax.example_libraries.stax`: layers as pairs (init_fun, apply_fun)."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from weft.jax import lax as _lax
from weft.jax import nn, random
from weft.jax.lax import conv_general_dilated, conv_transpose, padtype_to_pads, reduce_window
from weft.jax.nn.initializers import glorot_normal, normal, ones, zeros
from weft.jax.numpy import api as _numpy

jnp: Any = _numpy
lax: Any = _lax

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "elu", "gelu",
    "leaky_relu", "log_softmax", "logsoftmax", "parallel", "relu", "selu", "serial",
    "shape_dependent", "sigmoid", "softmax", "softplus",
]  # fmt: skip

Layer = tuple[Callable[..., Any], Callable[..., Any]]
relu, sigmoid, elu, leaky_relu, selu, gelu = (
    nn.relu, nn.sigmoid, nn.elu, nn.leaky_relu, nn.selu, nn.gelu,
)  # fmt: skip
log_softmax, softmax, softplus = nn.log_softmax, nn.softmax, nn.softplus
logsoftmax = log_softmax


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """A product with a matrix, and a bias."""
    weights, biases = W_init or glorot_normal(), b_init or normal()

    def init_fun(rng: Any, input_shape: Any) -> Any:
        k1, k2 = random.split(rng)
        w = weights(k1, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (w, biases(k2, (out_dim,)))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return jnp.dot(inputs, w) + b

    return init_fun, apply_fun


def _convolution(
    convolve: Callable[..., Any], dimension_numbers: Any, out_chan: int, filter_shape: Any,
    strides: Any, padding: Any, W_init: Any, b_init: Any,
) -> Layer:  # fmt: skip
    _, rhs, out = dimension_numbers
    steps = tuple(strides or (1,) * len(filter_shape))
    weights = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))
    biases = b_init or normal(1e-6)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        sizes = iter(filter_shape)
        channels = input_shape[dimension_numbers[0].index("C")]
        shape = [{"O": out_chan, "I": channels}.get(c) or next(sizes) for c in rhs]
        k1, k2 = random.split(rng)
        known = tuple([1 if n in (-1, None) else n for n in input_shape])
        w = weights(k1, tuple(shape))
        y = convolve(jnp.zeros(known), jnp.zeros(w.shape), steps, padding, dimension_numbers)
        given = input_shape[dimension_numbers[0].index("N")]
        output = tuple([given if c == "N" else n for c, n in zip(out, y.shape, strict=True)])
        bias = tuple([out_chan if c == "C" else 1 for c in out])
        return output, (w, biases(k2, bias))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return convolve(inputs, w, steps, padding, dimension_numbers) + b

    return init_fun, apply_fun


def _forward(x: Any, w: Any, steps: Any, padding: Any, numbers: Any) -> Any:
    return conv_general_dilated(x, w, steps, padding, dimension_numbers=numbers)


def _backward(x: Any, w: Any, steps: Any, padding: Any, numbers: Any) -> Any:
    return conv_transpose(x, w, steps, padding, dimension_numbers=numbers)


def GeneralConv(
    dimension_numbers: Any, out_chan: int, filter_shape: Any, strides: Any = None,
    padding: Any = "VALID", W_init: Any = None, b_init: Any = None,
) -> Layer:  # fmt: skip
    """A convolution in any layout."""
    return _convolution(
        _forward, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


def GeneralConvTranspose(
    dimension_numbers: Any, out_chan: int, filter_shape: Any, strides: Any = None,
    padding: Any = "VALID", W_init: Any = None, b_init: Any = None,
) -> Layer:  # fmt: skip
    """A transposed convolution in any layout."""
    return _convolution(
        _backward, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(
    axis: Any = (0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True,
    beta_init: Any = zeros, gamma_init: Any = ones,
) -> Layer:  # fmt: skip
    """Normalization by the statistics of the batch."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        shape = tuple([d for i, d in enumerate(input_shape) if i not in axes])
        k1, k2 = random.split(rng)
        beta = beta_init(k1, shape) if center else ()
        return input_shape, (beta, gamma_init(k2, shape) if scale else ())

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        key = tuple([None if i in axes else slice(None) for i in range(jnp.ndim(x))])
        z = nn.standardize(x, axes, epsilon=epsilon)
        z = gamma[key] * z if scale else z
        return z + beta[key] if center else z

    return init_fun, apply_fun


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer without parameters."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return input_shape, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return fun(inputs, **fun_kwargs)

    return init_fun, apply_fun


Tanh, Relu, Exp = elementwise(jnp.tanh), elementwise(relu), elementwise(jnp.exp)
LogSoftmax, Softmax = elementwise(log_softmax, axis=-1), elementwise(softmax, axis=-1)
Softplus, Sigmoid, Elu = elementwise(softplus), elementwise(sigmoid), elementwise(elu)
LeakyRelu, Selu, Gelu = elementwise(leaky_relu), elementwise(selu), elementwise(gelu)


def _pooling(reducer: Callable[..., Any], start: float, mean: bool = False) -> Callable[..., Layer]:
    def layer(
        window_shape: Sequence[int], strides: Any = None, padding: str = "VALID", spec: Any = None
    ) -> Layer:
        steps = tuple(strides or (1,) * len(window_shape))
        letters = spec or "NHWC"
        places = [i for i, c in enumerate(letters) if c not in "NC"]
        window, pace = [1] * len(letters), [1] * len(letters)
        for i, n, s in zip(places, window_shape, steps, strict=True):
            window[i], pace[i] = n, s

        def init_fun(rng: Any, input_shape: Any) -> Any:
            known = tuple([1 if n in (-1, None) else n for n in input_shape])
            pads = padtype_to_pads(known, window, pace, padding)
            whole = [n + low + high for n, (low, high) in zip(known, pads, strict=True)]
            rows = zip(whole, window, pace, input_shape, strict=True)
            shape = [n if k == s == 1 else (size - k) // s + 1 for size, k, s, n in rows]
            return tuple(shape), ()

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            found = reduce_window(inputs, start, reducer, window, pace, padding)
            if not mean:
                return found
            ones_ = jnp.ones([n if i in places else 1 for i, n in enumerate(inputs.shape)])
            return found / reduce_window(ones_, 0.0, lax.add, window, pace, padding)

        return init_fun, apply_fun

    return layer


MaxPool = _pooling(lax.max, -jnp.inf)
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, mean=True)


def _flat_init(rng: Any, input_shape: Any) -> Any:
    return (input_shape[0], functools.reduce(operator.mul, input_shape[1:], 1)), ()


def _flat_apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
    return jnp.reshape(inputs, (inputs.shape[0], -1))


Flatten: Layer = (_flat_init, _flat_apply)
Identity: Layer = (lambda rng, shape: (shape, ())), (lambda params, inputs, **kwargs: inputs)
FanInSum: Layer = (
    lambda rng, shape: (shape[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(lambda a, b: a + b, inputs),
)


def FanOut(num: int) -> Layer:
    """The input, several times."""
    return (lambda rng, shape: ([shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num)


def FanInConcat(axis: int = -1) -> Layer:
    """Inputs joined along an axis."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        at = axis % len(input_shape[0])
        total = sum([shape[at] for shape in input_shape])
        return (*input_shape[0][:at], total, *input_shape[0][at + 1 :]), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Elements kept with probability `rate`, in training."""

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if mode != "train":
            return inputs
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument. That is, "
                "instead of `apply_fun(params, inputs)`, call it like `apply_fun(params, inputs, "
                "rng)` where `rng` is a PRNG key (e.g. from `jax.random.key`)."
            )
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return (lambda rng, shape: (shape, ())), apply_fun


# Combinations


def serial(*layers: Layer) -> Layer:
    """Layers, one after the other."""
    inits, applies = zip(*layers, strict=True)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params: list[Any] = []
        for init in inits:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        for fun, param, rng in zip(applies, params, _keys(kwargs, len(applies)), strict=False):
            inputs = fun(param, inputs, **{**kwargs, "rng": rng})
        return inputs

    return init_fun, apply_fun


def _keys(kwargs: dict[str, Any], count: int) -> Any:
    rng = kwargs.pop("rng", None)
    return random.split(rng, count) if rng is not None else itertools.repeat(None)


def parallel(*layers: Layer) -> Layer:
    """Layers beside each other: a sequence of inputs to a sequence of outputs."""
    inits, applies = zip(*layers, strict=True)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(inits))
        pairs = [f(k, s) for f, k, s in zip(inits, keys, input_shape, strict=True)]
        shapes, params = zip(*pairs, strict=True)
        return list(shapes), list(params)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs, len(applies))
        rows = zip(applies, params, inputs, keys, strict=False)
        return [f(p, x, **{**kwargs, "rng": k}) for f, p, x, k in rows]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that follows from the shape of its input."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
