"""`Fabric`: precision, checkpoints and processes for a training loop that is written out."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from weft.eager.functions.api import Tensor, as_tensor, device, stack
from weft.errors import ArgumentError
from weft.host.nested import NESTED
from weft.ir.dtype import float32
from weft.nn import Module
from weft.nn.utils import clip_grad_norm_, clip_grad_value_
from weft.ops.warning import warn
from weft.serialization import load, save
from weft.train.gradient import parameters_of
from weft.train.precision import Precision
from weft.train.seeds import seed_everything
from weft.train.strategy import CPUAccelerator, Strategy, strategy_of

_STEPS = frozenset(("training_step", "validation_step", "test_step", "predict_step"))


class FabricModule(Module):
    """A module whose forward passes have a `Fabric`'s precision.

    Attributes:
        module: the module itself, whose names, such as its methods, are also here.
    """

    def __init__(self, module: Any, precision: Precision) -> None:
        super().__init__()
        self.module = module
        self._precision = precision

    def _run(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function in this precision; results are float32 again."""
        precision = self._precision
        if precision.converts:
            args, kwargs = precision.convert(args), precision.convert(kwargs)
        with precision.forward():
            found = fn(*args, **kwargs)
        if precision.dtype is None and not precision.converts:
            return found
        return NESTED.mapped(lambda x: x.to(float32) if _is_floating(x) else x, found)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward pass."""
        return self._run(self.module, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("_modules", {}).get("module")
        if inner is None or name == "module":
            return super().__getattr__(name)
        found = getattr(inner, name)
        if name not in _STEPS:
            return found
        return lambda *args, **kwargs: self._run(found, *args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The module's state."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Load the module's state."""
        return self.module.load_state_dict(state_dict, strict=strict, assign=assign)


class Fabric:
    """What a written-out training loop needs of Lightning: precision, files, several processes.

    Args:
        accelerator: `"cpu"` or `"auto"`.
        strategy: for several processes, an object of a `Strategy`; names are a single process.
        devices: 1 or `"auto"`.
        num_nodes: 1.
        precision: as for `Trainer`; `"16-mixed"` is `"bf16-mixed"`, with a warning, as in
            Lightning on a processor.
        plugins: none.
        callbacks: objects whose methods `call` calls.
        loggers: where `log` writes.

    Raises:
        ArgumentError: an argument asks for devices that are not there.

    >>> import weft as wf
    >>> fabric = Fabric(accelerator="cpu")
    >>> net = wf.nn.Linear(2, 1)
    >>> net, optimizer = fabric.setup(net, wf.optim.SGD(net.parameters(), lr=0.1))
    >>> fabric.backward(net(wf.ones(4, 2)).mean())
    >>> optimizer.step()
    """

    def __init__(
        self, *, accelerator: Any = "auto", strategy: Any = "auto", devices: Any = "auto",
        num_nodes: int = 1, precision: str | int | None = None, plugins: Any = None,
        callbacks: Any = None, loggers: Any = None,
    ) -> None:  # fmt: skip
        if plugins:
            raise ArgumentError.here(f"Fabric: expected plugins=None, got {plugins!r}")
        if str(precision) in ("16", "16-mixed"):
            warn("Fabric: precision='16-mixed' is for GPUs; 'bf16-mixed' takes its place")
            precision = "bf16-mixed"
        self.strategy: Strategy = strategy_of(strategy, devices, accelerator, num_nodes)
        self.accelerator = CPUAccelerator()
        self._precision = Precision("32-true" if precision is None else precision)
        self._callbacks = _listed(callbacks)
        self.loggers = _listed(loggers)

    # -- processes

    device = property(lambda self: device("cpu"), doc="Where everything is.")
    global_rank = property(lambda self: self.strategy.rank, doc="The rank of this process.")
    local_rank = property(lambda self: self.strategy.local_rank, doc="Its rank on its machine.")
    node_rank = property(lambda self: self.strategy.node_rank, doc="The rank of the machine.")
    world_size = property(lambda self: self.strategy.world_size, doc="The number of processes.")
    is_global_zero = property(lambda self: self.strategy.is_global_zero, doc="Whether rank 0.")
    logger = property(lambda self: self.loggers[0], doc="The first logger.")

    def launch(self, function: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Any:
        """Call `function(fabric, *args)`, if one is given: the processes exist already."""
        return None if function is None else function(self, *args, **kwargs)

    def print(self, *args: Any, **kwargs: Any) -> None:
        """`print`, on rank 0 only."""
        if self.is_global_zero:
            print(*args, **kwargs)

    def barrier(self, name: str | None = None) -> None:
        """Wait for all processes."""
        self.strategy.barrier(name or "")

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        """The object of rank `src`."""
        return self.strategy.broadcast(obj, src)

    def all_gather(self, data: Any, group: Any = None, sync_grads: bool = False) -> Any:
        """Tensors of all processes, with a first dimension for processes; `data` if there is one.

        Raises:
            ArgumentError: a group, or gradients among several processes.
        """
        alone = self.world_size == 1
        if group is not None or (sync_grads and not alone):
            raise ArgumentError.here("all_gather: expected group=None and sync_grads=False")
        gather = self.strategy.gather
        return (
            data
            if alone
            else NESTED.mapped(lambda x: stack([as_tensor(y) for y in gather(x)]), data)
        )

    def all_reduce(self, data: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        """The mean, or with `reduce_op="sum"` the sum, over all processes."""
        found = self.all_gather(data, group)
        if self.world_size == 1:
            return found
        is_mean = reduce_op in (None, "mean", "avg")
        return NESTED.mapped(lambda x: x.mean(0) if is_mean else x.sum(0), found)

    @contextlib.contextmanager
    def rank_zero_first(self, local: bool = False) -> Iterator[None]:
        """A block that rank 0 runs first."""
        if not self.is_global_zero:
            self.barrier()
        yield
        if self.is_global_zero:
            self.barrier()

    # -- set-up

    def setup(
        self, module: Any, *optimizers: Any, scheduler: Any = None, move_to_device: bool = True,
        _reapply_compile: bool = True,
    ) -> Any:  # fmt: skip
        """A module in this precision, and its optimizers, and the scheduler if one is given."""
        found = [self.setup_module(module), *optimizers]
        found += [] if scheduler is None else [scheduler]
        return found[0] if len(found) == 1 else tuple(found)

    def setup_module(
        self, module: Any, move_to_device: bool = True, _reapply_compile: bool = True
    ) -> FabricModule:
        """A module in this precision.

        Raises:
            ArgumentError: it was set up before.
        """
        if isinstance(module, FabricModule):
            raise ArgumentError.here("Fabric.setup: expected a module that was not set up before")
        self._precision.prepare(module)
        return FabricModule(self.strategy.begin(module), self._precision)

    def setup_optimizers(self, *optimizers: Any) -> Any:
        """The optimizers."""
        return optimizers[0] if len(optimizers) == 1 else optimizers

    def setup_dataloaders(
        self, *dataloaders: Any, use_distributed_sampler: bool = True, move_to_device: bool = True
    ) -> Any:
        """The loaders: tensors are where they are used."""
        return dataloaders[0] if len(dataloaders) == 1 else list(dataloaders)

    def to_device(self, obj: Any) -> Any:
        """The object itself: there is one device."""
        return obj

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """A block in this precision."""
        return self._precision.forward()

    def init_module(self, empty_init: bool | None = None) -> contextlib.AbstractContextManager[Any]:
        """A block in which a module is created."""
        return contextlib.nullcontext()

    def init_tensor(self) -> contextlib.AbstractContextManager[Any]:
        """A block in which tensors are created."""
        return contextlib.nullcontext()

    def no_backward_sync(
        self, module: Any, enabled: bool = True
    ) -> contextlib.AbstractContextManager[Any]:
        """A block whose backward passes do not exchange gradients."""
        return contextlib.nullcontext()

    # -- steps

    def backward(self, tensor: Any, *args: Any, model: Any = None, **kwargs: Any) -> None:
        """`tensor.backward()`."""
        tensor.backward(*args, **kwargs)

    def clip_gradients(
        self, module: Any, optimizer: Any, clip_val: float | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, error_if_nonfinite: bool = True,
    ) -> Any:  # fmt: skip
        """Clip the gradients of an optimizer's parameters; returns their norm, with `max_norm`.

        Raises:
            ArgumentError: not exactly one of `clip_val` and `max_norm` is given.
        """
        if (clip_val is None) == (max_norm is None):
            raise ArgumentError.here("clip_gradients: expected either clip_val or max_norm")
        parameters = list(parameters_of(optimizer))
        if clip_val is not None:
            return clip_grad_value_(parameters, clip_val)
        return clip_grad_norm_(parameters, max_norm or 0.0, norm_type, error_if_nonfinite)

    # -- files

    def save(
        self, path: Any, state: Mapping[str, Any],
        filter: Mapping[str, Callable[[str, Any], bool]] | None = None,
    ) -> None:  # fmt: skip
        """Save objects with a `state_dict`, tensors and numbers to a file.

        Args:
            filter: by an entry's name: whether a name and value of its state are saved.
        """
        found = {k: v.state_dict() if hasattr(v, "state_dict") else v for k, v in state.items()}
        for name, keeps in (filter or {}).items():
            found[name] = {k: v for k, v in found[name].items() if keeps(k, v)}
        if self.is_global_zero:
            save(found, path)
        self.barrier()

    def load(
        self, path: Any, state: dict[str, Any] | None = None, strict: bool = True,
        weights_only: bool | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Load a file of `save` into the objects of `state`; returns the entries that are left.

        Raises:
            ArgumentError: the file lacks an entry of `state`, and `strict` is true.
        """
        found: dict[str, Any] = load(path)
        for name, value in list((state or {}).items()):
            if name not in found:
                if strict:
                    raise ArgumentError.here(
                        f"Fabric.load: expected {name!r} in {path}, got {sorted(found)}"
                    )
                continue
            entry = found.pop(name)
            if isinstance(value, Module):
                value.load_state_dict(entry, strict=strict)
            elif hasattr(value, "load_state_dict"):
                value.load_state_dict(entry)
            elif state is not None:
                state[name] = entry
        return found

    def load_raw(
        self, path: Any, obj: Any, strict: bool = True, weights_only: bool | None = None
    ) -> None:
        """Load a file with one object's state into it."""
        obj.load_state_dict(load(path), **({"strict": strict} if isinstance(obj, Module) else {}))

    # -- loggers and callbacks

    def log(self, name: str, value: Any, step: int | None = None) -> None:
        """Give all loggers a number."""
        self.log_dict({name: value}, step)

    def log_dict(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Give all loggers numbers."""
        found = {k: v.item() if isinstance(v, Tensor) else v for k, v in metrics.items()}
        for logger in self.loggers if self.is_global_zero else ():
            logger.log_metrics(found, step)

    def call(self, hook_name: str, *args: Any, **kwargs: Any) -> None:
        """Call a method of all callbacks that have it, with the arguments that it takes."""
        for callback in self._callbacks:
            method = getattr(callback, hook_name, None)
            if callable(method):
                known = inspect.signature(method).parameters.values()
                every = any(p.kind is p.VAR_KEYWORD for p in known)
                names = {p.name for p in known}
                method(*args, **{k: v for k, v in kwargs.items() if every or k in names})

    seed_everything = staticmethod(seed_everything)


def _listed(given: Any) -> list[Any]:
    return [] if given is None else list(given) if isinstance(given, list | tuple) else [given]


def _is_floating(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype.is_floating
