"""Attention and recurrent layers against PyTorch's, over random sizes and options."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

from nn_case import Cases, Draw, check  # noqa: E402

CASES = Cases()


# Attention


@CASES.add
def scaled_dot_product(d):
    n, heads, rows, keys, width = d.size(1, 3), 2, d.size(), d.size(), d.size(1, 4)
    options = {"scale": d.pick(None, 0.3)}
    q, k = d.normal(n, heads, rows, width), d.normal(n, heads, keys, width)
    extra = []
    if d.flag():
        options["is_causal"] = True
    elif d.flag():
        extra = [d.normal(rows, keys)]
    elif d.flag():
        mask = d.rng.random((n, 1, rows, keys)) < 0.7
        mask[..., 0] = True
        extra = [mask]

    def make(nn):
        f = nn.functional.scaled_dot_product_attention
        return lambda q, k, v, *mask: f(q, k, v, *mask, **options)

    return make, [q, k, d.normal(n, heads, keys, d.size()), *extra]


@CASES.add
def grouped_queries(d):
    q, kv = d.normal(2, 6, 3, 4), [d.normal(2, d.pick(1, 2, 3), 5, 4)] * 2

    def make(nn):
        attend = nn.functional.scaled_dot_product_attention
        return lambda q, k, v: attend(q, k, v, enable_gqa=True)

    return make, [q, *kv]


def hidden_keys(d, n, keys):
    mask = d.rng.random((n, keys)) < 0.4
    mask[:, 0] = False
    return mask


@CASES.add
def multi_head_attention(d):
    heads, n, rows, keys = d.size(1, 3), d.size(1, 3), d.size(), d.size()
    width = heads * d.size(1, 3)
    kdim, vdim = d.pick((None, None), (3, None), (2, 4))
    batch_first = d.flag()
    options = {
        "bias": d.flag(), "add_bias_kv": d.flag(), "add_zero_attn": d.flag(), "kdim": kdim,
        "vdim": vdim, "batch_first": batch_first,
    }  # fmt: skip
    call = {"average_attn_weights": d.flag(), "need_weights": d.flag()}
    if d.flag():
        call["attn_mask"] = d.pick(d.normal(rows, keys), d.normal(n * heads, rows, keys))
    if d.flag():
        call["key_padding_mask"] = hidden_keys(d, n, keys)
        if "attn_mask" in call:
            mask = call["key_padding_mask"]
            call["key_padding_mask"] = np.where(mask, np.float32(-1e3), np.float32(0))

    def shaped(length, size):
        shape = (n, length, size) if batch_first else (length, n, size)
        return d.normal(*shape)

    q, k, v = shaped(rows, width), shaped(keys, kdim or width), shaped(keys, vdim or width)
    return lambda nn: nn.MultiheadAttention(width, heads, **options), [q, k, v], call


class Twice:
    """Calls an attention with one tensor as several arguments."""

    def __new__(cls, nn, places, width, **options):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(width, 2, **options)

            def forward(self, x, y=None):
                y = x if y is None else y
                return self.attention(x, y, y, need_weights=False)[0]

        return Net()


@CASES.add
def self_attention(d):
    width, batch_first = 2 * d.size(1, 3), d.flag()
    x = d.normal(*d.pick((3,), (2, 3)), width)
    make = lambda nn: Twice(nn, 1, width, batch_first=batch_first)  # noqa: E731
    return make, [x]


@CASES.add
def cross_attention(d):
    width = 2 * d.size(1, 3)
    make = lambda nn: Twice(nn, 2, width, kdim=d.pick(width, width))  # noqa: E731
    return make, [d.normal(3, 2, width), d.normal(4, 2, width)]


def layer_options(d):
    return {
        "dim_feedforward": d.size(2, 5), "dropout": 0.0, "activation": d.pick("relu", "gelu"),
        "batch_first": d.flag(), "norm_first": d.flag(), "bias": d.flag(),
    }  # fmt: skip


@CASES.add
def transformer_encoder_layer(d):
    width, options, rows = 2 * d.size(2, 3), layer_options(d), d.size(2, 4)
    call = {"src_mask": np.triu(np.full((rows, rows), -np.inf, np.float32), 1)}
    shape = (2, rows, width) if options["batch_first"] else (rows, 2, width)
    make = lambda nn: nn.TransformerEncoderLayer(width, 2, **options)  # noqa: E731
    return make, [d.normal(*shape)], d.pick({}, call, call | {"is_causal": True})


@CASES.add
def transformer_decoder_layer(d):
    width, options = 2 * d.size(2, 3), layer_options(d)
    make = lambda nn: nn.TransformerDecoderLayer(width, 2, **options)  # noqa: E731
    return make, [d.normal(3, 3, width), d.normal(3, 3, width)]


@CASES.add
def transformer(d):
    width, options = 4, layer_options(d)
    sizes = {"num_encoder_layers": d.size(1, 2), "num_decoder_layers": d.size(1, 2)}
    mask = np.triu(np.full((3, 3), -np.inf, np.float32), 1)
    make = lambda nn: nn.Transformer(width, 2, **sizes, **options)  # noqa: E731
    return make, [d.normal(3, 3, width), d.normal(3, 3, width)], {"tgt_mask": mask}


# Recurrence


def recurrent(name, states, **extra):
    def found(d):
        i, h, n, length = d.size(), d.size(2), d.size(1, 3), d.size(1, 5)
        options = {
            "num_layers": d.size(1, 2), "bias": d.flag(), "batch_first": d.flag(),
            "bidirectional": d.flag(),
        }  # fmt: skip
        options |= {k: d.pick(*v) for k, v in extra.items()}
        layers = options["num_layers"] * (1 + options["bidirectional"])
        single = d.flag()
        shape = (n, length, i) if options["batch_first"] else (length, n, i)
        inputs = [d.normal(*((length, i) if single else shape))]
        out = options.get("proj_size") or h
        given = [d.normal(layers, *(() if single else (n,)), w) for w in (out, h)[:states]]
        if d.flag():
            inputs.append(given[0] if states == 1 else tuple(given))
        return lambda nn: getattr(nn, name)(i, h, **options), inputs

    CASES[name] = found


recurrent("RNN", 1, nonlinearity=("tanh", "relu"))
recurrent("GRU", 1)
recurrent("LSTM", 2, proj_size=(0, 0, 1))


def cell(name, states, **extra):
    def found(d):
        i, h, n, bias = d.size(), d.size(), d.size(), d.flag()
        options = {k: d.pick(*v) for k, v in extra.items()}
        lead_dims = d.pick((), (n,))
        inputs = [d.normal(*lead_dims, i)]
        given = [d.normal(*lead_dims, h) for _ in range(states)]
        if d.flag():
            inputs.append(given[0] if states == 1 else tuple(given))
        return lambda nn: getattr(nn, name)(i, h, bias, **options), inputs

    CASES[name] = found


cell("RNNCell", 1, nonlinearity=("tanh", "relu"))
cell("GRUCell", 1)
cell("LSTMCell", 2)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:LSTM with projections")
@pytest.mark.parametrize("name", CASES)
@at_most(3)
@given(seed=st.integers(0, 10**6))
def test_sequence_layer(name, seed):
    check(*CASES[name](Draw(seed)))
