"""Doors: how they translate an exception that leaves a function of the package."""

import functools
import warnings

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft import errors
from weft.ops.refusal import REFUSALS, is_guarded, refusing, shown


def _behind_a_door(error):
    """A function whose door treats an exception as if it came from inside the package."""

    def fails(x=None):
        raise error

    code = fails.__code__.replace(co_filename=errors.__file__)
    return refusing(type(fails)(code, {}, "fails", fails.__defaults__, fails.__closure__), "op")


@pytest.mark.parametrize(("plain", "own"), REFUSALS, ids=lambda kind: kind.__name__)
def test_an_exception_becomes_one_of_weft_s_that_is_also_of_its_type(plain, own):
    error = plain("odd")
    with pytest.raises(errors.WeftError) as caught:
        _behind_a_door(error)(3)
    assert type(caught.value) is own
    assert isinstance(caught.value, plain) or plain is StopIteration
    assert caught.value.__cause__ is error
    reason = "'odd'" if plain is KeyError else "odd"
    told = f"op: expected op(x=None), got op(3); {plain.__name__}: {reason} (created at test_re"
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(), MemoryError(), RecursionError("deep"), RuntimeWarning("odd"),
        FloatingPointError("odd"), OSError("gone"), NotImplementedError("none"),
        np.linalg.LinAlgError("singular"), errors.GraphError("op: good"),
        ValueError("op: good (created at here.py:1)"),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_other_exceptions_stay_what_they_are(error):
    with pytest.raises(BaseException) as caught:
        _behind_a_door(error)()
    assert caught.value is error
    assert caught.value.__cause__ is None


def test_a_nameless_error_gets_the_name_and_stays_itself():
    error = errors.nameless(errors.ShapeError("expected more"))
    with pytest.raises(errors.ShapeError) as caught:
        _behind_a_door(error)()
    assert caught.value is error
    assert str(error).startswith("op: expected more (created at test_refusal.py:")


def test_exceptions_of_the_user_s_functions_pass():
    class Text:
        def __index__(self):
            raise TypeError("mine")

        def __array__(self, *args, **named):
            raise ValueError("mine")

    def fails(*args):
        raise IndexError("mine")

    class Net(wf.nn.Module):
        def forward(self, x):
            return {}["mine"]

    class Own(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise AttributeError("mine")

    for call in (
        lambda: wf.func.vmap(fails)(wf.ones(2)),
        lambda: wf.func.grad(fails)(wf.ones(())),
        lambda: wf.cat(fails(x) for x in range(2)),
        lambda: wf.nn.Sequential(wf.nn.Identity(), Net())(wf.ones(2)),
        lambda: Own.apply(wf.ones(2)),
        lambda: wnp.asarray(Text()),
        lambda: wf.nn.functional.triplet_margin_with_distance_loss(
            *[wf.ones(2, 2)] * 3, distance_function=fails
        ),
    ):
        with pytest.raises((TypeError, ValueError, LookupError, AttributeError)) as caught:
            call()
        assert not isinstance(caught.value, errors.WeftError)
        assert "mine" in str(caught.value)


def test_only_the_function_that_the_user_called_is_named():
    inner = refusing(len, "inner")
    door = _behind_a_door(ValueError("odd"))

    def outer():
        return door()

    code = outer.__code__.replace(co_filename=errors.__file__)
    called = refusing(type(outer)(code, {}, "outer", None, outer.__closure__), "outer")
    with pytest.raises(errors.ArgumentError, match=r"^outer: expected outer\(\), got outer\(\); V"):
        called()
    with pytest.raises(errors.DTypeError, match=r"^inner: expected inner\(obj, /\), got inner\(3"):
        inner(3)


def test_a_door_shows_what_it_is_for():
    assert wf.nn.functional.elu.__name__ == "elu"
    assert wf.special.entr.__name__ == "entr"
    assert is_guarded(wnp.stack)
    assert is_guarded(refusing(len))
    assert not is_guarded(functools.wraps(wnp.stack)(lambda: None))


def test_values_are_shown_by_kind_and_shape():
    class Odd:
        def __repr__(self):
            raise AssertionError

    given = [
        (wf.ones(2, 3), "float32(2, 3)"), (np.ones(2), "float64(2,)"), (Odd(), "Odd"), (Odd, "Odd"),
        (wf.float32, "DType"), ([1, "a", None, 2.5, 3], "[1, 'a', None, 2.5, ...]"),
        (((1,), [[2]]), "((1), [list])"), (10**1000, "a number of 3322 bits"),
        ("a" * 50, "'" + "a" * 35 + "..."),
    ]  # fmt: skip
    for value, text in given:
        assert shown(value) == text


def test_warnings_point_to_the_user_s_line_behind_doors():
    x = wf.ones(2, dtype=wf.complex64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x.to(wf.float32)
        x.type(wf.float32)
        wf.sum(x, dtype=wf.float32)
        wf.nn.functional.mse_loss(wf.ones(2, 1), wf.ones(2))
    assert [w.filename for w in caught] == [__file__] * 4


def test_warnings_that_are_errors_stay_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            wf.nn.functional.mse_loss(wf.ones(2, 1), wf.ones(2))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: wf.tensor(1.0).nanmean(keepdim=("3",)),
            r"sum: keepdims: expected a bool, got \('3",
        ),
        (lambda: wf.tensor([1]).any(keepdims=[]), r"any: keepdims: expected a bool, got \(\)"),
        (lambda: wnp.ones(2).all(keepdims="no"), "all: keepdims: expected a bool, got 'no'"),
        (
            lambda: wf.ops.sum(wf.ops.constant([1.0]), keepdims="no"),
            "sum: keepdims: expected a bool",
        ),
    ],
)
def test_what_is_no_truth_value_raises_where_it_is_recorded(call, told):
    with pytest.raises(errors.DTypeError, match=told):
        call()
