"""JAX's names: numbers and texts that JAX 0.10 gives, and what its programs rely on."""

import dataclasses
import functools
import pickle
import subprocess
import sys

import numpy as np
import pytest

import weft.jax as jax
import weft.jax.numpy as jnp
from weft.errors import ArgumentError
from weft.jax import lax, nn, random, tree_util
from weft.jax.example_libraries import optimizers, stax
from weft.jax.experimental.ode import odeint
from weft.jax.scipy.special import logsumexp

KEY = random.PRNGKey(3)


def test_keys_give_the_numbers_of_jax():
    key = random.PRNGKey(0)
    assert random.split(key).tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]
    assert random.randint(key, (5,), 0, 10).tolist() == [9, 0, 2, 3, 1]
    assert random.permutation(key, 10).tolist() == [0, 1, 8, 5, 6, 4, 3, 2, 7, 9]
    np.testing.assert_allclose(random.normal(key, (3,)), [1.6226422, 2.0252647, -0.43359444], 1e-6)
    drawn = random.uniform(key, (2, 2)).array
    wanted = np.array([[0.947667, 0.9785799], [0.33229148, 0.46866846]], np.float32)
    assert drawn.tobytes() == wanted.tobytes()
    np.testing.assert_allclose(
        random.gamma(random.PRNGKey(3), 2.0, (3,)), [0.63361293, 0.80836165, 5.8484917], 1e-5
    )


@pytest.mark.parametrize(
    "draw",
    [
        lambda k: random.split(k, 3),
        lambda k: random.fold_in(k, 7),
        lambda k: random.randint(k, (5,), -3, 1000),
        lambda k: random.permutation(k, 7),
        lambda k: random.normal(k, (4,)),
    ],
)
def test_draws_are_the_same_in_traced_functions(draw):
    wanted = draw(KEY).array
    assert jax.jit(draw)(KEY).array.tobytes() == wanted.tobytes()
    both = jax.vmap(draw)(jnp.stack([KEY, KEY]))
    assert both[1].array.tobytes() == wanted.tobytes()


def test_arrays_are_immutable_and_have_32_bits():
    x = jnp.arange(3.0)
    with pytest.raises(TypeError, match=r"JAX arrays are immutable"):
        x[0] = 1
    y = x
    y += 1
    assert x.tolist() == [0, 1, 2] and y.tolist() == [1, 2, 3]
    assert repr(np.arange(3) * x) == "Array([0., 1., 4.], dtype=float32)"
    assert repr(jnp.array(2)) == "Array(2, dtype=int32, weak_type=True)"
    assert jnp.sum(jnp.arange(3)).dtype == jnp.int32
    with jax.enable_x64():
        assert jnp.ones(2).dtype == jnp.float64


def test_python_numbers_are_weak():
    half = jnp.ones(2, jnp.bfloat16)
    assert (half * 2.5).dtype == jnp.bfloat16
    assert (jnp.array(2.5) * half).dtype == jnp.bfloat16
    assert (half * jnp.array(2.5)).dtype == jnp.bfloat16
    assert jnp.where(half > 0, half, 0.0).dtype == jnp.bfloat16
    assert jax.jit(lambda a, b: a * b)(2.0, half).dtype == jnp.bfloat16
    assert (half * jnp.float32(2)).dtype == jnp.float32
    assert (jnp.array([1], jnp.int8) + 1.5).dtype == jnp.float32


def test_what_python_numbers_lift_is_weak_and_reductions_are_not():
    whole, half = jnp.arange(3), jnp.ones(3, jnp.bfloat16)
    weak = whole * 2.5
    soft = [
        weak, 2.5 + whole, (whole > 0) + 1, whole * jnp.asarray(2.5), jnp.maximum(whole, 0.5),
        jnp.where(whole > 1, 1.0, 0.0), jnp.clip(weak, 0, 1), jnp.stack([weak, weak]),
    ]  # fmt: skip
    assert all(x.weak_type for x in soft) and not any(x.weak_type for x in (whole / 2, whole + 1))
    assert all((x.reshape(-1)[:3] * half).dtype == jnp.bfloat16 for x in soft)
    assert jnp.concatenate([weak, half]).dtype == jnp.array([weak[0], half[0]]).dtype == "bfloat16"
    for name in ("sum", "mean", "max", "std", "prod"):
        assert (getattr(weak, name)() * half).dtype == "float32"
        assert (getattr(jnp, name)(weak) * half).dtype == "float32"
    assert lax.fori_loop(0, 3, lambda i, v: v + i, jnp.uint8(1)) == 4


def test_what_reads_values_has_its_gradient_or_says_that_it_has_none():
    x = jnp.array([0.0, 2.0, 3.0])
    for of in (jnp.trim_zeros, lambda x: jnp.extract(x > 1, x), lambda x: jnp.compress(x > 1, x)):
        assert jax.grad(lambda x, of=of: (of(x) ** 2).sum())(x).tolist() == [0, 4, 6]
    for of in (jnp.poly, jnp.unique, lambda x: jnp.place(x, x > 1, x, inplace=False)):
        with pytest.raises(ArgumentError, match="stop_gradient"):
            jax.grad(lambda x, of=of: of(x).sum())(x)
    with pytest.raises(ArgumentError, match="reduce_precision"):
        lax.reduce_precision(x, 5, 3)


def test_scalar_types_make_arrays_and_are_dtypes():
    x = jnp.int32(2.7)
    assert isinstance(x, jax.Array) and x == 2 and x.dtype == jnp.int32 != jnp.int8
    assert jnp.bfloat16([1, 2]).dtype == "bfloat16" and not jnp.float32(1).weak_type
    assert jnp.float32(np.longdouble(2)).dtype in {jnp.float32: 0} and jnp.float32 == np.float32
    assert np.zeros(1, jnp.float16).dtype == np.float16 and isinstance(np.int8(1), jnp.int8)
    assert pickle.loads(pickle.dumps(jnp.uint8)) is jnp.uint8
    assert jax.grad(lambda x: jnp.float32(x) * jnp.float32(3))(2.0) == 3


def test_updates_outside_are_dropped_and_reads_clamped():
    x = jnp.arange(3)
    assert x.at[jnp.array([0, 9])].set(5).tolist() == [5, 1, 2]
    assert x.at[7].set(5).tolist() == [0, 1, 2] and int(x[7]) == 2
    assert x[jnp.array([1, 9])].tolist() == [1, 2]
    assert x.at[jnp.array([0, 9])].get(mode="fill", fill_value=-1).tolist() == [0, -1]
    assert x.at[jnp.array([0, 0])].add(2).tolist() == [4, 1, 2]
    slope = jax.grad(lambda x: jnp.sum(x.at[0].set(1.0) * x))(jnp.arange(3.0))
    assert slope.tolist() == [1, 2, 4]


@pytest.mark.parametrize("key", [
    ..., slice(1, None), np.s_[:, ::-1], np.s_[None, 1], np.s_[1, -1], (..., np.array([0, 2])),
    np.s_[:, np.array([2, 0])], (np.array([[0], [1]]), np.array([2, 0])), np.array([True, False]),
])  # fmt: skip
def test_updates_at_any_key_are_numpys(key):
    """Also where the array is traced, and what lies outside is dropped along any axis."""
    x = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
    for name, ufunc in (("add", np.add), ("max", np.maximum), ("divide", np.divide)):
        expected = x.copy()
        ufunc.at(expected, key, np.float32(4))
        for run in (lambda f: f, jax.jit):
            found = run(lambda x, name=name: getattr(x.at[key], name)(4.0))(jnp.asarray(x))
            np.testing.assert_allclose(found, expected)
    assert jnp.array([2, -4, 5]).at[...].mul(1.5).tolist() == [3, -6, 7]  # then cut to integers
    over = jnp.array([2, 9])
    assert jnp.asarray(x).at[:, over].add(1).tolist() == (x + np.eye(3)[2]).tolist()
    assert jnp.asarray(x).at[over, 0].set(7).tolist() == x.tolist()


def test_what_lies_outside_is_filled_or_dropped_in_every_form():
    x = jnp.arange(6).reshape(2, 3)
    fill = {"mode": "fill", "fill_value": -7}
    i, j = jnp.array([0, 5]), jnp.array([1, 1])
    assert x.at[9].get(**fill).tolist() == [-7] * 3
    assert x.at[i, j].get(**fill).tolist() == [1, -7]
    assert x.at[:, jnp.array([2, 3])].get(**fill).tolist() == [[2, -7], [5, -7]]
    assert x.at[..., 3].get(**fill).tolist() == [-7, -7]
    assert jax.jit(lambda k: x.at[k].get(**fill))(jnp.array([1, -3])).tolist() == [
        [3, 4, 5],
        [-7] * 3,
    ]
    found = jax.ops.segment_sum(jnp.array([1, 2, 3, 4]), jnp.array([0, 9, 1, -1]), 3)
    assert found.tolist() == [1, 3, 0]
    apart = jnp.array([1.0, 2.0, 9.0, jnp.nan])
    assert jnp.nanvar(apart, correction=1) == 19 and jnp.mean(apart[:2], dtype=int).dtype == "int32"
    with pytest.raises(Exception, match="mean"):
        jnp.nanstd(apart, mean=0)
    assert jnp.fft.fftfreq(4, 0.5).tolist() == [0.0, 0.5, -1.0, -0.5]
    assert jnp.bincount(jnp.array([1, 5, -1]), length=4).tolist() == [1, 1, 0, 0]
    assert jnp.linspace(-0.5, 1, 4, dtype=int).tolist() == [-1, 0, 0, 1]


def test_trees_have_sorted_keys_registered_classes_and_paths():
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Point:
        x: object
        name: str = dataclasses.field(metadata={"static": True})

    tree = {"b": 1.0, "a": (2.0, None, Point(3.0, "p"))}
    leaves, treedef = jax.tree.flatten(tree)
    assert leaves == [2.0, 3.0, 1.0] and list(treedef.unflatten(leaves)) == ["a", "b"]
    paths = [tree_util.keystr(p) for p, _ in tree_util.tree_flatten_with_path(tree)[0]]
    assert paths == ["['a'][0]", "['a'][2].x", "['b']"]
    slopes = jax.jit(jax.grad(lambda t: t["a"][2].x ** 2 * t["b"]))(tree)
    assert slopes["a"][2].name == "p" and float(slopes["a"][2].x) == 6.0
    assert jax.tree.map(lambda a, b: (a, b), {"k": 1}, {"k": [2, 3]}) == {"k": (1, [2, 3])}
    with pytest.raises(ValueError, match="pytree"):
        jax.tree.map(lambda a, b: a, [1, 2], [1])


def test_rules_of_ones_own():
    @jax.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    @f.defjvp
    def _(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), 10 * jnp.cos(x) * dx * y + jnp.sin(x) * dy

    wanted = 20 * np.cos(0.5)
    assert float(jax.grad(f)(0.5, 2.0)) == pytest.approx(wanted)
    assert float(jax.jvp(f, (0.5, 2.0), (1.0, 0.0))[1]) == pytest.approx(wanted)

    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (clipped(x), None), lambda _, g: (jnp.clip(g, -1, 1),))
    assert float(jax.grad(lambda x: clipped(x) * 5)(2.0)) == 1.0
    with pytest.raises(TypeError, match=r"Output had shape: \(3,\)"):
        jax.grad(lambda x: x)(jnp.ones(3))
    with pytest.raises(TypeError, match="requires real- or complex-valued inputs"):
        jax.grad(lambda x: x * 1.0)(1)


def test_loops_keep_weak_carries_and_give_gradients():
    total, running = lax.scan(lambda c, x: (c + x, c * x), 0, jnp.arange(1.0, 4.0))
    assert float(total) == 6.0 and running.tolist() == [0, 2, 9]
    assert int(jax.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s + i, 0))(5)) == 10
    power = jax.grad(lambda t: lax.fori_loop(0, 3, lambda i, s: s * t, 1.0))
    assert float(power(2.0)) == 12.0


def test_ode_and_its_adjoint():
    def end(a):
        return odeint(lambda y, t, a: -a * y, jnp.array([1.0, 2.0]), jnp.array([0.0, 1.0]), a)[
            -1
        ].sum()

    assert float(end(1.5)) == pytest.approx(3 * np.exp(-1.5), rel=1e-5)
    assert float(jax.grad(end)(1.5)) == pytest.approx(-3 * np.exp(-1.5), rel=1e-5)


def test_windows_and_convolutions_train():
    init, apply = stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"), stax.Relu, stax.MaxPool((2, 2), (2, 2)), stax.Flatten,
        stax.Dense(3), stax.LogSoftmax,
    )  # fmt: skip
    shape, params = init(KEY, (-1, 6, 6, 1))
    x, y = random.normal(KEY, (8, 6, 6, 1)), nn.one_hot(jnp.arange(8) % 3, 3)
    start, update, read = optimizers.adam(1e-2)

    def loss(params):
        return -jnp.mean(jnp.sum(apply(params, x) * y, 1))

    @jax.jit
    def step(i, state):
        value, slopes = jax.value_and_grad(loss)(read(state))
        return value, update(i, slopes, state)

    state, values = start(params), []
    for i in range(30):
        value, state = step(i, state)
        values.append(float(value))
    assert shape[-1] == 3 and values[-1] < 0.7 * values[0]


def test_programs_import_jax():
    code = (
        "import weft.as_jax, jax, jax.numpy as jnp\n"
        "from jax import random, lax\n"
        "from jax.scipy.stats import norm\n"
        "import jax.scipy.special, jax.example_libraries.stax\n"
        "assert jax.__version__ == '0.10.2' and jax.devices()[0].platform == 'cpu'\n"
        "print(jax.jit(lambda k: random.normal(k, ()))(random.key(1)), norm.logpdf(0.0))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split()[1] == "-0.9189385"


def test_logsumexp_of_weights():
    x = jnp.array([[1.0, 2.0], [3.0, -jnp.inf]])
    np.testing.assert_allclose(logsumexp(x, axis=1), [2.3132617, 3.0], 1e-6)
    value, sign = logsumexp(x, b=jnp.array([[1.0, -2.0], [0.0, 1.0]]), return_sign=True)
    assert float(sign) == -1.0 and float(value) == pytest.approx(np.log(2 * np.e**2 - np.e))


def test_composites_give_the_numbers_of_jax():
    xs, ys = jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 2.0])
    assert float(jnp.interp(0.5, xs, ys)) == 2
    assert jnp.interp(jnp.array([-0.5, 2.5]), xs, ys, period=3).tolist() == [1.5, 1.5]
    assert jnp.unwrap(jnp.array([0.0, 3.0, 1.0, 6.0]), period=4).tolist() == [0, -1, -3, -2]
    found = jax.jit(lambda x: jnp.nonzero(x, size=3, fill_value=-1))(jnp.array([0, 2, 3]))
    assert isinstance(found, tuple) and found[0].tolist() == [1, 2, -1]
    assert jax.vmap(lambda r: jnp.flatnonzero(r, size=1))(jnp.eye(2)).tolist() == [[0], [1]]
    short, long = jnp.array([1.0, 2.0]), jnp.array([1.0, 2.0, 4.0])
    assert jnp.correlate(short, long, mode="full").tolist() == [4, 10, 5, 2]
    assert jnp.correlate(short, long * 1j, mode="valid").tolist() == [-10j, -5j]
    ints = lax.conv(jnp.arange(4)[None, None], jnp.array([[[1, 2]]]), (1,), "VALID")
    assert ints.dtype == jnp.int32 and ints.tolist() == [[[2, 5, 8]]]
    largest, sign = logsumexp(jnp.array([-jnp.inf]), return_sign=True)
    assert float(largest) == -jnp.inf and float(sign) == 0
    assert random.t(KEY, jnp.array([2.0, 3.0])).shape == (2,)


def test_reductions_of_bits_and_stacks_of_a_dtype():
    rows = jnp.array([[1, 2], [4, 6]], "uint8")
    assert jax.lax.reduce_or(rows, (0,)).tolist() == [5, 6]
    assert jax.lax.reduce_and(rows[1:], (0, 1)) == 4
    assert jax.lax.reduce_or(rows == 2, (0, 1))
    assert jax.lax.population_count(jnp.array([-3, 3], "int8")).tolist() == [7, 2]
    assert jax.lax.conj(jnp.ones(2)).dtype == "complex64" and nn.identity(rows).dtype == "uint8"
    assert jnp.dstack([jnp.ones(2)], "int32").dtype == "int32"
    assert jnp.histogram_bin_edges(jnp.array(-1.0), 2).tolist() == [-1.5, -1.0, -0.5]


def test_argument_0_of_a_jitted_method_is_the_instance():
    class Solver:
        scale = 2.0

        @functools.partial(jax.jit, static_argnums=0)
        def step(self, state):
            return state[0] * self.scale, state[1] + 1

        @functools.partial(jax.jit, static_argnums=(0, 2))
        def solve(self, x, times):
            return jax.lax.while_loop(lambda s: s[1] < times, self.step, (x, 0))[0]

    assert Solver().solve(jnp.ones(2), 3).tolist() == [8.0, 8.0]


def test_traced_values_in_lists_are_joined():
    def f(a):
        whole = jnp.block([[a, jnp.zeros((2, 1))], [jnp.ones((1, 2)), 5.0]])
        return whole.at[0].set([a[0, 0], 2.0, a[1, 1]])

    expected = np.block([[np.eye(2), np.zeros((2, 1))], [np.ones((1, 2)), 5.0]])
    expected[0] = [1, 2, 1]
    np.testing.assert_array_equal(jax.jit(f)(jnp.eye(2)), expected)


@pytest.mark.parametrize(
    ("function", "args", "wanted"),
    [
        (lambda x: jnp.unique(x, size=3), [[3, 1, 3, 2, 9]], [1, 2, 3]),
        (lambda x: jnp.unique(x, size=3, fill_value=-1), [[2, 1, 1]], [1, 2, -1]),
        (lambda x: jnp.unique(x, False, True, size=3)[1], [[3, 1, 3]], [1, 0, 1]),
        (lambda x: jnp.unique(x, False, False, True, size=3)[1], [[3, 1, 3]], [1, 2, 0]),
        (lambda x, n: jnp.repeat(x, n, total_repeat_length=5), [[7, 8], [1, 2]], [7, 8, 8, 8, 8]),
        (lambda x, n: jnp.roll(x, n), [[1, 2, 3], -1], [2, 3, 1]),
        (lambda x, n: jnp.roll(x, n, (0, 1)), [[[1, 2], [3, 4]], [1, 1]], [[4, 3], [2, 1]]),
        (lambda x, q: jnp.percentile(x, q), [[1.0, 2.0, 3.0], 75], 2.5),
        (lambda x, y: jnp.lexsort((x, y)), [[2, 1, 0], [1, 1, 0]], [2, 1, 0]),
        (lambda x: jnp.bitwise_count(x), [[-3, 255]], [2, 8]),
        (lambda x: jnp.insert(x, 1, 9), [[1, 2]], [1, 9, 2]),
        (lambda x: jnp.insert(x, 1, x[:, 0], axis=1), [[[1, 2], [3, 4]]], [[1, 1, 2], [3, 3, 4]]),
        (lambda x: x[jnp.tril_indices_from(x)], [[[1, 2], [3, 4]]], [1, 3, 4]),
    ],
)
def test_functions_of_values_are_traced(function, args, wanted):
    args = [jnp.array(x) for x in args]
    many = [jnp.stack([x, x]) for x in args]
    assert function(*args).tolist() == jax.jit(function)(*args).tolist() == wanted
    assert jax.vmap(function)(*many).tolist() == [wanted, wanted]


def test_what_needs_values_says_so():
    with pytest.raises(TypeError, match=r"jax.numpy.poly: reads values.*pure_callback"):
        jax.jit(jnp.poly)(jnp.array([1.0, 0.0]))
    with pytest.raises(TypeError, match=r"jax.numpy.nonzero without size: reads values"):
        jax.vmap(jnp.nonzero)(jnp.ones((2, 3)))


def test_numbers_that_examples_share_stay_numbers():
    def repeated(x, sizes):
        return jnp.concatenate([x] * sizes["n"])

    x = jnp.ones((2, 3))
    assert jax.vmap(repeated, (0, None))(x, {"n": 2}).shape == (2, 6)
