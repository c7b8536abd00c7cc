"""Errors for invalid arguments name the operation, what it expects, and what it got."""

import re
import warnings

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
import weft.numpy as wnp
import weft.tf1 as tf
from tests.hostile import FRONT_ENDS, fault, refusals
from weft import errors, nn
from weft.errors import ArgumentError, DTypeError, GraphError, KindError, ShapeError

RAGGED = [[1], [2, 3]]
X = wf.ones(2, 3)
REFUSED = {
    # eager
    "cat: expected a sequence of tensors, got 3.5": (DTypeError, lambda: wf.cat(3.5)),
    "real: expected a tensor, got 3.0": (DTypeError, lambda: wf.real(3.0)),
    "exp: expected a tensor, an array or a number, got str": (DTypeError, lambda: wf.exp("a")),
    "arccos: expected arccos(x), got arccos(); TypeError": (DTypeError, lambda: wf.arccos()),
    "dropout: expected dropout(input, p=0.5, training=True, inplace=False), got "
    "dropout(float32(2, 3), 'a'); TypeError: ": (DTypeError, lambda: wf.dropout(X, "a")),
    "zeros: dtype: expected one of bool, int8": (DTypeError, lambda: wf.zeros(2, dtype="int7")),
    "det: expected nested lists of equal lengths, got [[1], [2, 3]]": (
        ShapeError, lambda: wf.det(RAGGED)),
    "sum: expected different dims, got (0, 0)": (ShapeError, lambda: wf.sum(X, (0, 0))),
    "diag: expected diag(x, diagonal=0, *, k=None), got diag(float32(2, 3), [1]); TypeError": (
        DTypeError, lambda: wf.diag(X, [1])),
    "randint: expected randint(low=0": (ArgumentError, lambda: wf.randint("a", 3)),
    "igamma: shapes do not broadcast: (2,) and (3,)": (
        ShapeError, lambda: wf.igamma(wf.ones(2), wf.ones(3))),
    "tril: expected an integer, got 0.5": (DTypeError, lambda: wf.tril(X, 0.5)),
    "histogram: expected at least one bin, got -1": (ShapeError, lambda: wf.histogram(X, -1)),
    "searchsorted: expected integer indices, got float32": (
        DTypeError, lambda: wf.searchsorted(X, X, sorter=X)),
    "sort: axis: expected an integer, got False": (
        DTypeError, lambda: wf.ops.argsort(np.ones((2, 3)), axis=False)),
    # methods
    "add_: expected add_(x, other, *, alpha=1), got add_(float32(2, 3)); TypeError": (
        DTypeError, lambda: X.add_()),
    "type_as: expected type_as(self, other), got type_as(float32(2, 3), 'float32'); Attr": (
        KindError, lambda: X.type_as("float32")),
    "hsplit: expected hsplit(x, indices_or_sections), got hsplit(float32(2, 3), 0.5); Type": (
        DTypeError, lambda: X.hsplit(0.5)),
    "multiply: expected a number that float32 holds, got a number of 2001 bits": (
        DTypeError, lambda: X * 2**2000),
    "stft: expected stft(": (DTypeError, lambda: X.stft()),
    "round: expected round(x, *, decimals=0), got round(float32(2, 3), decimals=[1]); Type": (
        DTypeError, lambda: X.round(decimals=[1])),
    "in: expected in(self, value), got in(bool(1,), 1000000000000000000000000000000); Over": (
        errors.TooLargeError, lambda: 10**30 in wf.tensor([True])),
    # layers as functions, layers
    "elu: expected elu(input, alpha=1.0, inplace=False), got elu(float32(2, 3), [1]); Type": (
        DTypeError, lambda: F.elu(X, [1])),
    "max_pool1d: kernel_size: expected an integer, got 'a'": (
        DTypeError, lambda: F.max_pool1d(X, "a")),
    "relu: expected a tensor, an array or a number, got NoneType": (
        DTypeError, lambda: F.relu(None)),
    "Conv2d: kernel_size: expected an integer, got 'a'": (
        DTypeError, lambda: nn.Conv2d(3, 2, "a")),
    "Dropout: expected Dropout(p=0.5, inplace=False), got Dropout(p=ellipsis); TypeError": (
        DTypeError, lambda: nn.Dropout(p=...)),
    "Tanh: expected Tanh(), got Tanh(1); TypeError": (DTypeError, lambda: nn.Tanh(1)),
    "Linear: expected a tensor, an array or a number, got Odd": (
        DTypeError, lambda: nn.Linear(3, 2)(type("Odd", (), {})())),
    "linear: expected an input of float32, as the weights are, got uint8; convert it: x.to(": (
        DTypeError, lambda: nn.Linear(3, 2)(X.to(wf.uint8))),
    "conv: expected an input of float32, as the weights are, got int64": (
        DTypeError, lambda: nn.Conv1d(2, 1, 1)(X.long())),
    "batch_norm: expected a floating-point input, got int64; convert it: x.float()": (
        DTypeError, lambda: nn.BatchNorm1d(3).eval()(X.long())),
    "layer_norm: expected a floating-point input, got bool": (
        DTypeError, lambda: nn.LayerNorm(3)(X.bool())),
    "rms_norm: expected a floating-point input, got int32": (
        DTypeError, lambda: nn.RMSNorm(3)(X.int())),
    "soft_margin_loss: expected a target that broadcasts to the losses' shape (2, 3), got (2, 1": (
        ShapeError, lambda: F.soft_margin_loss(X, X[:, None])),
    "margin_ranking_loss: expected inputs of one rank, got (3,), (3, 1), (3,); reshape them": (
        ShapeError, lambda: F.margin_ranking_loss(X[0], X[0, :, None], X[0])),
    "cross_entropy: expected a target of shape (2, 3) like the input, got (2,); integers are cl": (
        ShapeError, lambda: F.cross_entropy(X, X[:, 0])),
    "searchsorted: expected one sorted row, or rows of the values' leading dimensions, got (2, 3": (
        ShapeError, lambda: wf.searchsorted(X, X[0])),
    "scaled_dot_product_attention: expected a probability p from 0 to 1, got 2.0": (
        ArgumentError, lambda: F.scaled_dot_product_attention(X, X, X, dropout_p=2.0)),
    # linear algebra and similar functions
    "addmm: expected an addend that broadcasts to the product's (2, 2), got (1, 2, 3)": (
        ShapeError, lambda: wf.addmm(X[None], X, X.T)),
    "fft: expected a number of points n of 1 or more, got -1": (
        ShapeError, lambda: wf.fft.rfft(X, -1)),
    "fft2: expected a size of 1 or more for each of axes (1,), got (1, 2)": (
        ShapeError, lambda: wf.fft.fft2(X, [1, 2], [1])),
    "det: expected a tensor, an array or a number, got dict": (
        DTypeError, lambda: wf.linalg.det({})),
    "fftn: expected norm backward, ortho or forward, got [1]": (
        ArgumentError, lambda: wf.fft.fftn(X, None, 0, [1])),
    "multigammaln: expected multigammaln(input, p), got multigammaln(float32(2, 3), 'a'); Type": (
        DTypeError, lambda: wf.special.multigammaln(X, "a")),
    "hann: expected hann(M, *, sym=True, **options), got hann('a'); TypeError": (
        DTypeError, lambda: wf.signal.windows.hann("a")),
    # NumPy's and SciPy's names
    "expand_dims: expected different dims, got (0, 0)": (
        ShapeError, lambda: wnp.expand_dims(np.ones(2), (0, 0))),
    "stack: expected a sequence of arrays, got None": (DTypeError, lambda: wnp.stack(None)),
    "concat: expected at least one array, got none": (ShapeError, lambda: wnp.concatenate([])),
    "remainder: expected nested lists of equal lengths, got": (
        ShapeError, lambda: wnp.remainder(RAGGED, 1)),
    "eye: expected eye(n_rows, n_cols=None, /, k=0": (DTypeError, lambda: wnp.eye({})),
    "fftn: expected fftn(x, /, s=None, axes=None, norm=None), got fftn(float64(2,), 1.5)": (
        DTypeError, lambda: wnp.fft.fftn(np.ones(2), 1.5)),
    "zeta: expected 2 arguments, got 1": (DTypeError, lambda: wf.scipy.special.zeta(1.0)),
    "solve_banded: expected solve_banded(l_and_u, ab, b), got solve_banded(1, 2, 3)": (
        DTypeError, lambda: wf.scipy.linalg.solve_banded(1, 2, 3)),
    # TensorFlow's names
    "abs: name: expected a text or None, got (0, 0)": (DTypeError, lambda: tf.abs(1.0, (0, 0))),
    "MaxPool: expected padding SAME, VALID or pairs of numbers, got None": (
        DTypeError, lambda: tf.nn.max_pool(np.ones((1, 2, 2, 1)), 1, 1, None)),
    "argmin: expected one of axis and dimension, got both": (
        GraphError, lambda: tf.argmin([1.0], 0, dimension=0)),
    "sort: direction: expected ASCENDING or DESCENDING, got 0": (
        GraphError, lambda: tf.sort([1.0], -1, 0)),
    "get_collection: expected get_collection(key, scope=None), got get_collection([]); Type": (
        DTypeError, lambda: tf.get_collection([])),
    "matrix_diag: expected matrix_diag(": (errors.OutOfRangeError, lambda: tf.matrix_diag(2)),
    # transformations
    "functional_call: expected functional_call(module, ": (
        KindError, lambda: wf.func.functional_call(3, {}, ())),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_a_refusal_names_operation_expectation_and_arguments(text):
    kind, call = REFUSED[text]
    with pytest.raises(kind) as caught, tf.Graph().as_default():
        call()
    assert type(caught.value) is kind
    assert str(caught.value).startswith(text)
    assert re.search(r" \(created at test_refusals.py:\d+\)$", str(caught.value))


@pytest.mark.parametrize("front", FRONT_ENDS)
def test_no_drawn_refusal_is_plain(front):
    count = 300 if front in ("eager", "numpy") else 60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [(name, fault(name, e), repr(e)) for name, e in refusals(front, count, 0)]
    assert [(name, why, e) for name, why, e in found if why] == []


def test_python_s_own_words_stay_where_they_name_the_function():
    with pytest.raises(TypeError, match=r"^sum\(\) got an unexpected keyword argument 'odd'$"):
        wf.sum(X, odd=1)
    with pytest.raises(TypeError, match=r"^unsupported operand type\(s\) for \+: 'Tensor' and"):
        X + "a"


def test_an_element_type_refuses_what_is_no_number():
    with pytest.raises(DTypeError, match=r"^bfloat16: expected a number, got datetime64$"):
        wf.bfloat16(np.datetime64("2020-01-01"))
