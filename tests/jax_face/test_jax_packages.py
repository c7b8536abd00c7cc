"""What packages for JAX ask of its inside: operations they declare, traces, known results."""

import pickle

import numpy as np
import pytest

import weft.jax as jax
import weft.jax.numpy as jnp
from weft.jax.core import ShapedArray, Tracer, get_aval
from weft.mirror.mirror import has
from weft.mirror.supplied import jax_inside, jax_partial
from weft.mirror.supplied.jax_primitive import Primitive, lower_fun, register_lowering


def test_a_declared_operation_goes_through_all_transformations():
    cube = Primitive("cube")
    with pytest.raises(NotImplementedError, match="'cube' not implemented"):
        cube.bind(2.0)
    cube.def_impl(lambda x, *, times: times * x**3)
    cube.def_abstract_eval(lambda x, *, times: x)
    register_lowering(cube, lower_fun(cube.function, multiple_results=False))
    slope = jax.jit(jax.vmap(jax.grad(lambda x: cube.bind(x, times=2.0))))
    np.testing.assert_allclose(slope(jnp.array([1.0, 2.0])), [6, 24])


def test_only_arrays_without_a_value_are_tracers():
    seen = []

    def f(x):
        seen.extend([isinstance(x * 2, Tracer), isinstance(jnp.ones(2), Tracer)])
        seen.append(jax_inside.get_opaque_trace_state())
        return jax.block_until_ready(x * 2) + 1

    assert jax.jit(f)(jnp.ones(2)).tolist() == [3, 3]
    assert seen[0] and seen[-1] != jax_inside.get_opaque_trace_state()
    assert not isinstance(jnp.ones(2), Tracer) and not isinstance(1.0, Tracer)
    assert jax_inside.trace_state_clean()
    assert isinstance(get_aval(jnp.ones(2)), ShapedArray) and ShapedArray((2,), "float32").ndim == 1


def test_results_are_known_where_they_depend_on_no_unknown_argument():
    leaves, tree = jax.tree_util.tree_flatten((jnp.ones(2), jnp.array(3.0)))
    calls = []

    def f(x, y):
        calls.append(1)
        return {"known": y * 2, "moved": x + y, "fixed": jnp.ones(1)}

    flat, made = jax_partial.flatten_fun_nokwargs(f, tree)
    unknown = jax_partial.PartialVal.unknown(ShapedArray((2,), "float32"))
    pvals = [unknown, jax_partial.PartialVal.known(leaves[1])]
    _, rows, _ = jax_partial.trace_to_jaxpr_nounits(flat, pvals)
    rows = made().unflatten(range(3)), rows
    assert [aval is None for aval, _ in rows[1]] == [True, True, False]
    assert len(calls) == 1  # what a function counts is counted once
    assert float(rows[1][1][1]) == 6 and rows[0] == {"fixed": 0, "known": 1, "moved": 2}


def test_names_that_packages_import():
    for name in (
        "jax.Device", "jax.extend.core.Primitive", "jax.interpreters.batching.primitive_batchers",
        "jax.extend.core.get_opaque_trace_state", "jax._src.traceback_util.api_boundary",
        "jax.core.ShapedArray", "jax.tree_util.KeyPath", "jax.version.__version_info__",
    ):  # fmt: skip
        assert has(name), name


def test_an_object_whose_name_is_no_text_is_a_function():
    class Model:
        __name__ = None

        def __call__(self, x):
            return jnp.sum(x * 2)

    assert float(jax.grad(Model())(1.0)) == 2
    assert jax.vmap(Model())(jnp.ones(3)).shape == (3,)
    assert float(jax.lax.cond(True, Model(), Model(), 1.0)) == 2


def test_singular_systems_give_what_elimination_gives():
    zero, b = jnp.zeros((1, 1)), jnp.array([-2.0])
    for sign in (1, -1):
        np.testing.assert_array_equal(jnp.linalg.solve(sign * zero, b), [-sign * np.inf])
    assert np.isnan(jnp.linalg.solve(zero, jnp.zeros(1))[0])
    found = jnp.linalg.solve(jnp.array([[1.0, 2.0], [2.0, 4.0]]), jnp.array([-1.0, 2.0]))
    np.testing.assert_array_equal(found, [np.inf, -np.inf])
    np.testing.assert_array_equal(jnp.linalg.inv(-zero), [[-np.inf]])
    with np.errstate(all="ignore"):
        found = jnp.linalg.inv(jnp.zeros((2, 2)))
    np.testing.assert_array_equal(found, [[np.nan, np.nan], [np.nan, np.inf]])


def test_functions_of_known_shapes_are_traced():
    bits = jnp.array([1, 0, 1], dtype=jnp.uint8)
    assert jax.jit(jnp.packbits)(bits).tolist() == [160]
    x = jnp.array([1.0, 2.0])
    counts, edges, _ = jax.jit(lambda x: jnp.histogram2d(x, x, bins=2))(x)
    assert counts.dtype == jnp.int32 and counts.tolist() == [[1, 0], [0, 1]]
    assert edges.tolist() == [1, 1.5, 2]
    weighted = jax.jit(lambda x, w: jnp.histogramdd(x[:, None], 2, weights=w)[0])(x, x)
    assert weighted.dtype == jnp.float32 and weighted.tolist() == [1, 2]
    assert [p.shape for p in jnp.ones((3, 6)).split(2, axis=-1)] == [(3, 3), (3, 3)]
    assert [p.tolist() for p in jnp.split(jnp.arange(4), jnp.array([1, 3]))] == [[0], [1, 2], [3]]


def test_a_branch_calls_back_when_it_runs():
    calls = []

    def told(x):
        calls.append(float(x))
        return x

    def checked(pred):
        x = jnp.float32(3.0)
        kind = jax.ShapeDtypeStruct((), "float32")
        return jax.lax.cond(pred, lambda: jax.pure_callback(told, kind, x), lambda: -x)

    assert float(checked(False)) == -3.0 and not calls
    assert float(jax.jit(checked)(True)) == 3.0 and calls == [3.0]
    # the old form: an operand for each branch
    found = jax.lax.cond(False, {"a": 2.0}, lambda x: x["a"], (3.0, 4.0), lambda x: x[0] * x[1])
    assert float(found) == 12.0


def test_a_traced_function_is_evaluated_with_other_constants():
    made = {}

    def f(x):
        scale = jnp.sin(x) * jnp.ones(2)
        made["jaxpr"] = jax.make_jaxpr(lambda y: (y * scale, {"sum": (y + scale).sum()}))(x)
        return jax.core.eval_jaxpr(made["jaxpr"].jaxpr, made["jaxpr"].consts, 2.0)[1]

    assert float(jax.grad(f)(0.0)) == 2.0  # through the constants
    (const,) = made["jaxpr"].consts
    assert const.shape == (2,) and jnp.result_type(jax.eval_shape(jnp.sin, const)) == jnp.float32
    found = jax.core.eval_jaxpr(made["jaxpr"], [jnp.array([1.0, 5.0])], 3)
    assert [x.tolist() for x in found] == [[3, 15], 12]


def test_a_rule_that_raises_does_so_where_a_derivative_is_asked():
    @jax.custom_jvp
    def fixed(x):
        return x

    @fixed.defjvp
    def _(primals, tangents):
        raise RuntimeError("not this one")

    def f(x, stop):
        return x * fixed(jax.lax.stop_gradient(x) if stop else x)

    assert float(jax.jit(f, static_argnums=1)(3.0, False)) == 9.0
    assert float(jax.grad(jax.jit(f, static_argnums=1))(3.0, True)) == 3.0
    with pytest.raises(RuntimeError, match="not this one"):
        float(jax.grad(jax.jit(f, static_argnums=1))(3.0, False))


def test_cotangents_meet_their_arguments():
    """Those of integers are `None` or a symbolic zero, also within a tree."""

    @jax.custom_jvp
    def f(tree):
        return tree["a"] * tree["n"] * tree["z"]

    f.defjvp(lambda p, t: (f(*p), 10 * t[0]["a"] + 100 * t[0]["z"]))
    tree = {"a": jnp.float32(2), "n": jnp.int32(3), "z": jnp.float32(4)}

    def of(a, z):
        return f({**tree, "a": a, "z": z})

    assert [float(g) for g in jax.grad(of, (0, 1))(2.0, 4.0)] == [10, 100]
    seen = []

    @jax.custom_vjp
    def g(x, n, y):
        return x * n * y, n

    def forward(*args):
        seen.append([x.perturbed for x in args])
        x, n, y = [x.value for x in args]
        return g(x, n, y), (n, y)

    def backward(kept, ct):
        n, y = kept
        zero = jax.custom_derivatives.SymbolicZero
        assert isinstance(ct[1], zero)
        return ct[0] * n * y, zero(jax.typeof(n).to_tangent_aval()), None

    g.defvjp(forward, backward, symbolic_zeros=True)
    slope = jax.grad(lambda x: g(x, jnp.int32(3), jnp.float32(5))[0])
    assert float(slope(2.0)) == float(jax.jit(slope)(2.0)) == 15
    assert seen[0] == [True, False, False]


def test_what_packages_ask_of_arrays():
    x, weak, key = jnp.ones(2), jnp.asarray(1.0), jax.random.key(3)
    assert type(x).__module__.startswith("jaxlib.") and "Array" in type(x).__name__
    for y in (x, weak, key):
        again = pickle.loads(pickle.dumps(y))
        assert repr(again) == repr(y) and type(again) is type(y)
    assert x.dtype == "float32" and x.dtype != "f8" and jnp.result_type(True) == "bool"
    assert not jnp.iscomplexobj(key) and jnp.iscomplexobj(jax.ShapeDtypeStruct((), "complex64"))
    assert jnp.finfo("float32").precision == 6
    several = jnp.polyval(jnp.array([[1.0, 2.0], [3.0, 4.0]]), 2.0)
    assert several.tolist() == [5, 8]
    outer, inner = jax.tree.structure([0, 0]), jax.tree.structure({"a": 0})
    exchanged = jax.tree.transpose(
        outer_treedef=outer, inner_treedef=inner, pytree_to_transpose=[{"a": 1}, {"a": 2}]
    )
    assert exchanged == {"a": [1, 2]}


def test_an_array_tells_where_it_lies():
    x = jnp.ones((2, 3))
    (shard,) = x.addressable_shards
    assert shard.data is x and shard.index == (slice(None), slice(None))
    assert x.sharding.device_set == x.devices() == {x.device} == set(jax.devices())
    assert x.sharding.devices_indices_map(x.shape) == {x.device: shard.index}
    assert x.sharding.shard_shape(x.shape) == (2, 3) and x.sharding.is_fully_replicated
    assert jax_inside.global_state.client is None
