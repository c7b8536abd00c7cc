"""JAX's transformations of functions: those of `weft.func`, on JAX's arrays."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft import func
from weft.errors import GradientError
from weft.func.checkpoint import checkpoint as _checkpoint
from weft.func.explanation import explain
from weft.func.jit import Jitted as _Jitted
from weft.func.tree import flatten
from weft.jax.array import Array, as_array, given, taken
from weft.jax.config import config, refuse_given, without_effect
from weft.jax.numpy import api as _numpy  # it also gives arrays their methods
from weft.transport import session

__all__ = [
    "checkpoint", "grad", "hessian", "jacfwd", "jacobian",
    "jacrev", "jit", "jvp", "linear_transpose", "linearize", "named_call", "pmap", "remat",
    "shard_map", "value_and_grad", "vjp", "vmap",
]  # fmt: skip

Function = Callable[..., Any]


def wraps(fun: Any) -> Callable[[Any], Any]:
    """`functools.wraps` of any callable: objects may have no text for a name."""
    texts = [n for n in functools.WRAPPER_ASSIGNMENTS if isinstance(getattr(fun, n, None), str)]
    return functools.wraps(fun, texts, ())


def arrays(structure: Any, of: Callable[[Any], Any] = as_array) -> Any:
    """A pytree with numbers and NumPy's arrays as arrays.

    Args:
        of: what makes a leaf an array; `taken` leaves numbers as they are.
    """
    leaves, tree = flatten(structure)
    found = [x if isinstance(x, Array) else of(x) for x in leaves]
    return structure if all(map(_same, found, leaves)) else tree.build(found)


def _same(x: Any, y: Any) -> bool:
    return x is y


def results(structure: Any) -> Any:
    """A pytree with tensors as arrays."""
    leaves, tree = flatten(structure)
    return tree.build([given(x) if not isinstance(x, Array) else x for x in leaves])


class Jitted(_Jitted):
    """A function that is traced once a signature; `jax.jit` makes it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if config.jax_disable_jit:
            return self.function(*args, **kwargs)
        free = [x if i in self._positions else arrays(x) for i, x in enumerate(args)]
        named = {k: v if k in self._names else arrays(v) for k, v in kwargs.items()}
        return super().__call__(*free, **named)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind as a method: the instance is argument 0, static or a tree."""
        return self if instance is None else functools.partial(self, instance)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The function traced for arguments; `compile()` gives it back."""
        return Lowered(self, args, kwargs)

    trace = eval_shape = lower

    def clear_cache(self) -> None:
        """Forget all traces."""
        self._entries.clear()
        self._last = None

    @property
    def __wrapped__(self) -> Function:
        return self.function

    @__wrapped__.setter
    def __wrapped__(self, value: Function) -> None:
        pass


class Lowered:
    """A function with arguments for which it is compiled when it is called."""

    def __init__(self, function: Jitted, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs

    def compile(self) -> Function:
        """The function."""
        return self.function

    def as_text(self) -> str:
        """The graph, as Weft prints it."""
        whole = functools.partial(self.function.function, **self.kwargs)
        return str(explain(whole, *arrays(self.args)))


def jit(
    fun: Function | None = None, *, static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None, donate_argnums: Any = None,
    donate_argnames: Any = None, keep_unused: bool = False, device: Any = None,
    backend: str | None = None, inline: bool = False, in_shardings: Any = None,
    out_shardings: Any = None, abstracted_axes: Any = None, compiler_options: Any = None,
) -> Any:  # fmt: skip
    """Trace a function once for each signature of its arguments, then call it as one node.

    Args:
        static_argnums, static_argnames: arguments that are no arrays, whose values count.
        donate_argnums, donate_argnames, keep_unused, device, backend, inline, in_shardings,
            out_shardings, abstracted_axes, compiler_options: no effect: there is one device, and
            memory is planned.
    """
    refuse_given("jit", abstracted_axes=abstracted_axes)
    without_effect(
        "jit", donate_argnums=donate_argnums, donate_argnames=donate_argnames, device=device,
        keep_unused=keep_unused, backend=backend, inline=inline, in_shardings=in_shardings,
        out_shardings=out_shardings, compiler_options=compiler_options,
    )  # fmt: skip
    if fun is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames
        )
    if isinstance(fun, type) and not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    numbers = [static_argnums] if isinstance(static_argnums, int) else list(static_argnums or ())
    names = [static_argnames] if isinstance(static_argnames, str) else list(static_argnames or ())
    positions, names = _both(fun, numbers, names)
    return Jitted(fun, positions, names)


def _both(fun: Function, numbers: list[int], names: list[str]) -> tuple[list[int], list[str]]:
    """Static arguments by position and by name, whichever way they are said and passed."""
    if not numbers and not names:
        return [], []
    try:
        known = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        return numbers, names
    numbers = [n % len(known) if n < 0 else n for n in numbers]
    more = [known[n] for n in numbers if n < len(known)]
    places = [known.index(n) for n in names if n in known]
    return sorted({*numbers, *places}), sorted({*names, *more})


def _differentiated(args: Sequence[Any], argnums: Any) -> list[Any]:
    """The arguments with those to differentiate by as arrays."""
    chosen = {argnums % len(args)} if isinstance(argnums, int) else {i % len(args) for i in argnums}
    return [arrays(x) if i in chosen else _quiet(x) for i, x in enumerate(args)]


def _quiet(x: Any) -> Any:
    return x if isinstance(x, Array | int | float | str | bool) else taken(x)


def _real_inputs(what: str, error: GradientError, args: Sequence[Any], argnums: Any) -> TypeError:
    chosen = [argnums] if isinstance(argnums, int) else argnums
    for x in flatten([args[i] for i in chosen])[0]:
        kind = getattr(getattr(x, "lazy", None), "type", None)
        if kind is None or not kind.dtype.is_inexact:
            got = type(x).__name__ if kind is None else kind.dtype
            return TypeError(
                f"{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype "
                f"of np.inexact), but got {got}. If you want to use Boolean- or integer-valued "
                f"inputs, use vjp or set allow_int to True."
            )
    return TypeError(str(error))


def value_and_grad(
    fun: Function, argnums: Any = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Function:  # fmt: skip
    """A function that returns both the result of a function and its gradient."""
    refuse_given("value_and_grad", reduce_axes=reduce_axes)
    if holomorphic:
        return _holomorphic(fun, argnums, has_aux)
    return _gradient("value_and_grad", func.value_and_grad, fun, argnums, has_aux, allow_int)


def grad(
    fun: Function, argnums: Any = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Function:  # fmt: skip
    """The gradient of a function that returns a scalar, as a function of the same arguments.

    >>> float(grad(lambda x: x**3)(2.0))
    12.0
    """
    refuse_given("grad", reduce_axes=reduce_axes)
    if holomorphic:
        both = _holomorphic(fun, argnums, has_aux)
        return lambda *args, **kw: both(*args, **kw)[1]
    return _gradient("grad", func.grad, fun, argnums, has_aux, allow_int)


def _holomorphic(fun: Function, argnums: Any, has_aux: bool) -> Function:
    """The value and the complex derivative of a function of one complex argument."""
    refuse_given("grad: holomorphic", has_aux=has_aux)

    @wraps(fun)
    def both(*args: Any, **kwargs: Any) -> Any:
        def of_one(x: Any) -> Any:
            return as_array(fun(*args[:argnums], x, *args[argnums + 1 :], **kwargs))

        y, pull = vjp(of_one, args[argnums])
        if not y.dtype.is_complex or y.ndim:
            raise TypeError(
                "grad with holomorphic=True requires outputs with dtype that is a sub-dtype of "
                f"np.complexfloating, and scalars, but got {y.lazy.type}."
            )
        return y, pull(1.0 + 0j)[0]

    return both


def _gradient(
    what: str, of: Function, fun: Function, argnums: Any, has_aux: bool, allow_int: bool
) -> Function:
    shapes: list[Any] = []

    @wraps(fun)
    def scalar(*args: Any, **kwargs: Any) -> Any:
        found = fun(*args, **kwargs)
        value = found[0] if has_aux else found
        shapes[:] = [getattr(value, "shape", ())]
        value = as_array(value)
        return (value, found[1]) if has_aux else value

    inner = of(scalar, argnums, has_aux)

    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        if isinstance(argnums, int) and argnums >= len(args):
            raise (
                TypeError(
                    f"differentiating with respect to argnums={argnums} requires at least "
                    f"{argnums + 1} positional arguments to be passed by the caller, but got only "
                    f"{len(args)} positional arguments."
                )
            )
        given_ = _differentiated(args, argnums)
        try:
            return inner(*given_, **kwargs)
        except GradientError as error:
            if shapes and shapes[0] != ():
                text = "Gradient only defined for scalar-output functions. Output had shape: "
                raise TypeError(f"{text}{tuple(shapes[0])}.") from None
            if "expected floating arguments" not in str(error):
                raise
            raise _real_inputs(what, error, given_, argnums) from None

    return gradient


def vjp(fun: Function, *primals: Any, has_aux: bool = False, reduce_axes: Any = ()) -> Any:
    """The result of a function, and a function from its cotangents to those of the arguments."""
    refuse_given("vjp", reduce_axes=reduce_axes)
    y, pull, *aux = func.vjp(fun, *arrays(primals), has_aux=has_aux)
    return (y, lambda g: pull(arrays(g)), *aux)


def jvp(fun: Function, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The result of a function, and its tangent."""
    return func.jvp(fun, tuple(arrays(primals)), tuple(arrays(tangents)), has_aux)


def linear_transpose(fun: Function, *primals: Any, reduce_axes: Any = ()) -> Function:
    """The transpose of a linear function.

    Args:
        primals: arrays, or shapes and dtypes, of its arguments.
    """
    refuse_given("linear_transpose", reduce_axes=reduce_axes)
    zeros = [_numpy.zeros(x.shape, x.dtype) for x in map(as_array, primals)]
    return vjp(fun, *zeros)[1]


def linearize(fun: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The result of a function, and its derivative as a function of tangents."""
    refuse_given("linearize", has_aux=has_aux)
    y, push = func.linearize(fun, *arrays(primals))
    return y, lambda *tangents: push(*arrays(tangents))


def _matrices(of: Function) -> Function:
    def made(
        fun: Function, argnums: Any = 0, has_aux: bool = False, holomorphic: bool = False,
        allow_int: bool = False,
    ) -> Function:  # fmt: skip
        inner = of(fun, argnums, has_aux)

        @wraps(fun)
        def matrix(*args: Any, **kwargs: Any) -> Any:
            return inner(*_differentiated(args, argnums), **kwargs)

        return matrix

    made.__doc__ = f"`weft.func.{of.__name__}` of JAX's arrays."
    return made


jacfwd = _matrices(func.jacfwd)
jacrev = jacobian = _matrices(func.jacobian)


def hessian(
    fun: Function, argnums: Any = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """The matrix of second derivatives."""
    refuse_given("hessian", holomorphic=holomorphic)
    return jacfwd(jacrev(fun, argnums, has_aux), argnums, has_aux)


def vmap(
    fun: Function, in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None,
    axis_size: int | None = None, spmd_axis_name: Any = None,
) -> Function:  # fmt: skip
    """Vectorize a function over an axis of its arguments."""
    refuse_given("vmap", spmd_axis_name=spmd_axis_name)
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes

    @wraps(fun)
    def whole(*args: Any, **kwargs: Any) -> Any:
        return arrays(fun(*args, **kwargs))

    inner = func.vmap(whole, axes, out_axes, "different", axis_name=axis_name)

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        each = axes if isinstance(axes, tuple) else (axes,) * len(args)
        shared = [i for i, a in enumerate(each) if a is None]  # in these, numbers stay numbers
        args = tuple([arrays(x, taken if i in shared else as_array) for i, x in enumerate(args)])
        if axis_size is not None:  # as that of one more argument
            sized = func.vmap(
                lambda _, *xs: whole(*xs, **kwargs),
                (0, *each),
                out_axes,
                "different",
                axis_name=axis_name,
            )
            return sized(_numpy.arange(axis_size), *args)
        return inner(*args, **arrays(kwargs))

    return mapped


def pmap(
    fun: Function, axis_name: Any = None, *, in_axes: Any = 0, out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (), **options: Any,
) -> Function:  # fmt: skip
    """`func.pmap` over ranks; in one process, a compiled `vmap`.

    Args:
        static_broadcasted_argnums: arguments that are no arrays.
    """
    without_effect("pmap", **options)
    told = static_broadcasted_argnums
    fixed = [told] if isinstance(told, int) else list(told)
    name = axis_name or "devices"

    def over(mapping: Function) -> Function:
        @wraps(fun)
        def mapped(*args: Any, **kwargs: Any) -> Any:
            def inner(*free: Any, **named: Any) -> Any:
                rest = iter(free)
                return fun(*[x if i in fixed else next(rest) for i, x in enumerate(args)], **named)

            free = [i for i in range(len(args)) if i not in fixed]
            axes = in_axes if isinstance(in_axes, int) else tuple([in_axes[i] for i in free])
            return mapping(inner, axes)(*[args[i] for i in free], **kwargs)

        return mapped

    alone = jit(over(lambda f, axes: vmap(f, axes, out_axes, name)), static_argnums=fixed)
    ranks = over(lambda f, axes: func.pmap(f, name, in_axes=axes, out_axes=out_axes))

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return (alone if session.current() is None else ranks)(*args, **kwargs)

    return mapped


def shard_map(
    f: Function | None = None, /, mesh: Any = None, in_specs: Any = None, out_specs: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    """`func.shard_map` over ranks; on a mesh of the one device, the function with its axes.

    >>> from weft.jax import lax, make_mesh
    >>> mesh = make_mesh((1,), ("x",))
    >>> float(shard_map(lambda x: lax.psum(x.sum(), "x"), mesh, None, None)(_numpy.ones(3)))
    3.0
    """
    without_effect("shard_map", **options)
    if f is None:
        return functools.partial(
            shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options
        )
    if not hasattr(mesh, "axis_names"):
        return func.shard_map(f, mesh, in_specs, out_specs)
    return wraps(f)(functools.reduce(_on_one, mesh.axis_names, f))


def _on_one(f: Function, name: str) -> Function:
    """A function with an axis of size 1, which its collectives can name."""

    def run(*args: Any) -> Any:
        leaves, tree = flatten(args)
        found, whole = flatten(vmap(f, axis_name=name)(*tree.build([_wide(x) for x in leaves])))
        return whole.build([y[0] for y in found])

    return run


def _wide(x: Any) -> Any:
    y = as_array(x)
    return y[None] if isinstance(y, Array) else x


def checkpoint(
    fun: Function | None = None, *, prevent_cse: bool = True, policy: Any = None,
    static_argnums: Any = (), concrete: bool = False,
) -> Any:  # fmt: skip
    """Recompute a function in the backward pass instead of keeping its values.

    Args:
        static_argnums: arguments that are no arrays.
        prevent_cse, policy, concrete: no effect: all values inside are recomputed.
    """
    without_effect("checkpoint", prevent_cse=prevent_cse, policy=policy, concrete=concrete)
    if fun is None:
        return functools.partial(checkpoint, static_argnums=static_argnums)
    fixed = [static_argnums] if isinstance(static_argnums, int) else list(static_argnums)

    @wraps(fun)
    def again(*args: Any, **kwargs: Any) -> Any:
        free = [arrays(x) for i, x in enumerate(args) if i not in fixed]

        def inner(*rest: Any, **named: Any) -> Any:
            parts = iter(rest)
            whole = [x if i in fixed else next(parts) for i, x in enumerate(args)]
            return fun(*whole, **named)

        return _checkpoint(inner)(*free, **arrays(kwargs))

    return again


remat = checkpoint


def named_call(fun: Function, *, name: str | None = None) -> Function:
    """The function, with a name."""
    run = wraps(fun)(lambda *args, **kwargs: fun(*args, **kwargs))
    run.__name__ = name or getattr(fun, "__name__", "named_call")
    return run
