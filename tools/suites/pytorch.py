"""PyTorch's test suite: `torch` is Weft, `torch.testing` is the checkout's own source."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ContextDecorator, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import weft
from tools.suites.absent import Absent, Phase
from tools.suites.mirror import Library
from tools.suites.raising import RaisingTestCase, warns_once
from weft import config
from weft.eager.record.pending.state import trace
from weft.errors import ConfigError
from weft.mirror.supplied import pytree
from weft.nn.module.hook import GLOBAL
from weft.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

MODULES = {
    "torch": "weft",
    "torch.func": "weft.func",
    "functorch": "weft.func",
    "functorch.experimental": "weft.func",
    "torch._vmap_internals": "weft.func",
    "torch._functorch.vmap": "weft.func",
    "torch.autograd.forward_ad": "weft.autograd.forward_ad",
    "torch.autograd.grad_mode": "weft.eager.record.pending.mode",
    "torch.random": "weft",
    "torch.nn.modules": "weft.nn",
    "torch.nn.functional.grad": "weft.nn.grad",
    "torch.nn.modules.activation": "weft.nn",
    "torch.nn.modules.batchnorm": "weft.nn.layer.normalization",
    "torch.nn.modules.conv": "weft.nn.layer.convolution",
    "torch.nn.modules.lazy": "weft.nn.layer.lazy",
    "torch.nn.modules.module": "weft.nn",
    "torch.nn.modules.utils": "weft.nn.utils",
}
# Names that the tests use and NumPy 2 no longer has.
OLDER_NUMPY: dict[str, Callable[..., Any]] = {
    "msort": partial(np.sort, axis=0),
    "product": np.prod,
    "trapz": np.trapezoid,
}


INSTANCE_NORMS = (weft.nn.InstanceNorm1d, weft.nn.InstanceNorm2d, weft.nn.InstanceNorm3d)


def library(folder: Path) -> Library:
    """The mirror of `torch`, with the checkout in `folder`."""
    # Its tests mock this, and Python does not restore what a class has inherited from `object`.
    for kind in (Parameter, UninitializedParameter, UninitializedBuffer):
        setattr(kind, "__new__", staticmethod(new_parameter))  # noqa: B010
    for layer, rank in zip(INSTANCE_NORMS, (2, 3, 4), strict=True):
        setattr(layer, "_get_no_batch_dim", lambda self, rank=rank: rank)  # noqa: B010
    for name, function in OLDER_NUMPY.items():
        np.__dict__.setdefault(name, function)
    np.gradient = partial(slopes, np.gradient)
    np.quantile, np.nanquantile = map(with_interpolation, (np.quantile, np.nanquantile))
    np.linalg.qr = partial(factors, np.linalg.qr)
    np.linalg.solve = partial(solution, np.linalg.solve)
    with suppress(ImportError):  # the tests that need it are then skipped
        signal: Any = importlib.import_module("scipy.signal")
        signal.get_window = partial(window, signal.get_window)
    return Library(
        name="torch",
        folder=folder.resolve(),
        modules=MODULES,
        supplied=supplied(),
        assigned={"torch.nn.modules.module": global_hooks()},
        own=("torch.testing",),
        patches={
            "torch.testing._internal.common_utils": {
                "dtype_name": dtype_name,
                "DeterministicGuard": nullcontext,  # Weft is always deterministic
                "TestCase.assertWarnsOnceRegex": warns_once,
            },
            # The harness's own function takes an absent dtype, which is false, for none at all.
            "torch.testing._internal.common_device_type": {"_dtype_test_suffix": dtype_suffix},
            # The harness pickles a layer before it tests it.
            "torch.testing._internal.common_nn": {"ModuleTest.should_test_pickle": Never()},
        },
        flags=("is_nested", "is_mkldnn", "is_mps", "is_quantized", "is_sparse_csr", "is_xla"),
        classes=("torch.Tensor", "Tensor"),
    )


def slopes(gradient: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """`numpy.gradient`, which returned a list for several axes."""
    found = gradient(*arguments, **named)
    return list(found) if isinstance(found, tuple) else found


def with_interpolation(quantile: Callable[..., Any]) -> Callable[..., Any]:
    """`numpy.quantile`, whose `method` had another name."""

    def function(*given: Any, interpolation: str | None = None, **named: Any) -> Any:
        method = {} if interpolation is None else {"method": interpolation}
        return quantile(*given, **named, **method)

    return function


def factors(qr: Callable[..., Any], x: Any, mode: str = "reduced") -> Any:
    """`numpy.linalg.qr`, whose raw results were arrays."""
    return qr(np.asarray(x) if mode == "raw" else x, mode)


def solution(solve: Callable[..., Any], a: Any, b: Any) -> Any:
    """`numpy.linalg.solve`, where several right sides could be vectors."""
    if np.ndim(b) == np.ndim(a) - 1 > 1:
        return solve(a, b[..., None])[..., 0]
    return solve(a, b)


def window(get: Callable[..., Any], kind: Any, size: int, *more: Any, **named: Any) -> Any:
    """`scipy.signal.get_window`, also of no samples."""
    return get(kind, size, *more, **named) if size else np.empty(0)


def supplied() -> dict[str, dict[str, Any]]:
    """Facts about PyTorch's build that the test harness needs, and one more module."""
    return {
        "torch": {
            "vmap": vmap,
            "is_warn_always_enabled": lambda: True,
            "set_warn_always": lambda on: None,
            "get_num_threads": lambda: config.get("threads"),
            "set_num_threads": lambda count: None,  # no result depends on it
            "dtype": Dtype,
            "device": Device,
            "__version__": weft.__version__,
        },
        "torch._C": {
            "has_lapack": True,
            "has_spectral": True,
            "has_mkl": False,
            "_DisableFuncTorch": nullcontext,  # the harness saves generators around tests
            "_debug_only_are_vmap_fallback_warnings_enabled": lambda: False,
            "_debug_only_display_vmap_fallback_warnings": lambda on: None,
        },
        # Weft has no vmap fallback, a loop over examples, that could be turned off.
        "torch._C._functorch": {
            "_is_vmap_fallback_enabled": lambda: False,
            "_set_vmap_fallback_enabled": lambda on: None,
        },
        "torch.autograd.forward_ad": {"_current_level": CurrentLevel()},
        "torch.version": {"cuda": None, "hip": None, "debug": False, "git_version": ""},
        "torch.utils._pytree": {
            "tree_flatten": pytree.tree_flatten,
            "tree_unflatten": pytree.tree_unflatten,
            "tree_map": pytree.tree_map,
            "tree_map_only": pytree.tree_map_only,
        },
        "torch.utils._mode_utils": {"no_dispatch": nullcontext},  # Weft has no dispatch modes
        "torch.cuda": {
            "is_available": lambda: False,
            "is_initialized": lambda: False,
            "device_count": lambda: 0,
        },
        "torch.backends.cuda": {
            "is_built": lambda: False,
            "preferred_linalg_library": lambda name: None,
            "matmul": SimpleNamespace(allow_tf32=False),
            "sdp_kernel": NoFlags,
        },
        "torch.backends.cudnn": {
            "is_acceptable": lambda x: False,
            "version": lambda: None,
            "flags": NoFlags,
        },
        "torch.backends.opt_einsum": {"is_available": lambda: False, "flags": NoFlags},
        "torch.func": {"vmap": vmap},
        "functorch": {"vmap": vmap},
        "torch.nn.modules": {"__all__": layers()},
        "torch.nn.utils.stateless": {"_functional_call": weft.func.functional_call},
        "torch.backends.mkl": {"is_available": lambda: False},
        "torch.backends.mkldnn": {"is_available": lambda: False},
        "torch.backends.mps": {"is_available": lambda: False},
        "torch.sparse": {"check_sparse_tensor_invariants": NoSparseChecks},
        "expecttest": {"ACCEPT": False, "TestCase": ExpectTestCase},
    }


def vmap(
    func: Any, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", **options: Any
) -> Any:
    """Weft's function with PyTorch's names of keyword arguments; cached."""
    dims = {"in_dims": in_dims, "out_dims": out_dims}
    return weft.func.vmap(func, randomness=randomness, **dims, **options)


def new_parameter(kind: type, *arguments: Any, **named: Any) -> Any:
    """An instance of this class; the arguments are for `__init__`."""
    return object.__new__(kind)


def layers() -> list[str]:
    """The names of all modules of Weft."""
    kinds = {name: kind for name, kind in vars(weft.nn).items() if isinstance(kind, type)}
    return sorted(name for name, kind in kinds.items() if issubclass(kind, weft.nn.Module))


def global_hooks() -> dict[str, Callable[[Any], None]]:
    """Global module hooks, which tests clear by assigning an empty dictionary."""
    kinds = {
        "_global_forward_pre_hooks": "before",
        "_global_forward_hooks": "after",
        "_global_backward_pre_hooks": "backward_before",
        "_global_backward_hooks": "backward",
    }
    return {name: partial(forget_hooks, kind) for name, kind in kinds.items()}


def forget_hooks(kind: str, nothing: Any) -> None:
    """Removes the global hooks of one kind."""
    for number, hook in list(GLOBAL.items()):
        if hook[0] == kind:
            del GLOBAL[number]


class NoFlags(ContextDecorator):
    """Settings of a library that Weft does not use; they change nothing."""

    def __init__(self, **flags: Any) -> None:
        self.flags = flags

    def __enter__(self) -> None:
        """Sets nothing."""

    def __exit__(self, *problem: object) -> None:
        """Resets nothing."""


class AnyDtype(type):
    """The metaclass of `Dtype`."""

    def __instancecheck__(cls, value: object) -> bool:
        if isinstance(value, Absent):  # the harness lists dtypes, some of which may be absent
            return Phase.forgives()
        return isinstance(value, type(weft.float32))


class Dtype(metaclass=AnyDtype):
    """Dtypes; in operator tables, also those that Weft does not have."""


class AnyDevice(type):
    """The metaclass of `Device`."""

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        """The device; absent if a file, not a test, names one that Weft does not have."""
        try:
            return weft.device(*arguments, **named)
        except ConfigError:
            if Phase.running:
                raise
            return Absent(f"torch.device{arguments!r}")

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, weft.device)


class Device(metaclass=AnyDevice):
    """Devices; in a file's lists, also those that Weft does not have."""


class CurrentLevel:
    """The index of the innermost forward-mode level, -1 if there is none."""

    def __ge__(self, number: int) -> bool:
        return len(trace.now.duals) - 1 >= number


class Never:
    """An attribute that stays false, whatever is assigned."""

    def __get__(self, owner: object, kind: type) -> bool:
        return False

    def __set__(self, owner: object, value: object) -> None:
        pass


class NoSparseChecks:
    """A switch that the harness turns for every test; Weft has no sparse invariants to check."""

    @staticmethod
    def is_enabled() -> bool:
        """Always false."""
        return False

    @staticmethod
    def enable() -> None:
        """There is nothing to check."""

    disable = enable


def dtype_name(dtype: Any) -> str:
    """A dtype in a test's name, such as `float32`."""
    return str(dtype).rpartition(".")[2]


def dtype_suffix(dtypes: Any) -> str:
    """Dtypes in a test's name: `_float32_int64`."""
    if dtypes is None:
        return ""
    given = dtypes if isinstance(dtypes, list | tuple) else [dtypes]
    return "".join([f"_{dtype_name(dtype)}" for dtype in given])


class ExpectTestCase(RaisingTestCase):
    """PyTorch's own base class, of a package that need not be installed."""

    def assertExpectedInline(self, actual: object, expected: str, skip: int = 0) -> None:
        """Compares texts."""
        self.assertMultiLineEqual(expected, str(actual))
