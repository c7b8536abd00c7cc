"""`FullyShardedDataParallel`: PyTorch's first form of sharded modules, over `fully_shard`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import weft.distributed as dist
from weft.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
)
from weft.distributed.device_mesh import DeviceMesh, init_device_mesh
from weft.distributed.fsdp.fully_shard import fully_shard
from weft.distributed.fsdp.module import FSDPModule
from weft.distributed.fsdp.option import (
    FullStateDictConfig,
    MixedPrecision,
    ShardingStrategy,
    StateDictConfig,
    StateDictType,
)
from weft.distributed.fsdp.policy import MixedPrecisionPolicy
from weft.distributed.fsdp.wrap import wrap_by
from weft.errors import ArgumentError
from weft.host.cores import local_size
from weft.nn.module.module import Module
from weft.nn.utils import clip_grad_norm_
from weft.optim.optimizer import Optimizer
from weft.transport import session
from weft.transport.group import Group

__all__ = ["FSDP", "FullyShardedDataParallel"]

_Setting = tuple[StateDictType, StateDictConfig | None, StateDictConfig | None]
_KEPT = {ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2}  # pyright: ignore[reportPrivateUsage]


class _Methods(Module):
    """What a sharded module has in this form besides the methods of `FSDPModule`."""

    _stated: _Setting = (StateDictType.FULL_STATE_DICT, None, None)

    @property
    def module(self) -> Any:
        """The module: itself, or what it calls `module`."""
        return self._modules.get("module", self)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Whole tensors, unless `state_dict_type` says otherwise."""
        kind, config, _ = self._stated
        if kind is not StateDictType.FULL_STATE_DICT or args or kwargs:
            return super().state_dict(*args, **kwargs)
        self._stated = (StateDictType.LOCAL_STATE_DICT, None, None)
        try:
            return get_model_state_dict(self, options=_whole(config))
        finally:
            self._stated = (kind, config, _)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Clip the norm of all gradients, over all ranks; returns it."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context in which gradients accumulate on each rank."""
        units = FullyShardedDataParallel.fsdp_modules(self)
        for unit in units:
            unit.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            for unit in units:
                unit.set_requires_gradient_sync(True)


def _whole(config: StateDictConfig | None) -> StateDictOptions:
    first = isinstance(config, FullStateDictConfig) and config.rank0_only
    return StateDictOptions(full_state_dict=True, cpu_offload=first)


@functools.cache
def _class_of(sharded: type[Module]) -> type[Module]:
    fields = {"__module__": sharded.__module__, "__doc__": sharded.__doc__}
    return type(sharded.__name__, (_Methods, sharded), fields)


class _Wrapping(type):
    """The class of `FullyShardedDataParallel`: sharded modules are its instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, FSDPModule)

    def __call__(
        cls, module: Any, process_group: Group | None = None,
        sharding_strategy: ShardingStrategy | None = None, cpu_offload: Any = None,
        auto_wrap_policy: Any = None, backward_prefetch: Any = None,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None, param_init_fn: Any = None,
        device_id: Any = None, sync_module_states: bool = False, forward_prefetch: bool = False,
        limit_all_gathers: bool = True, use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None, device_mesh: DeviceMesh | None = None,
    ) -> Any:  # fmt: skip
        """The module, sharded in place."""
        del cpu_offload, backward_prefetch, device_id, sync_module_states, forward_prefetch
        del limit_all_gathers, use_orig_params
        if process_group is not None and process_group is not session.world():
            raise ArgumentError.here(
                "FullyShardedDataParallel: expected process_group=None: pass device_mesh for some "
                "of the ranks"
            )
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        precision = mixed_precision or MixedPrecision()
        ignored = [p for each in ignored_modules or () for p in each.parameters()]
        for each in ignored_states or ():
            ignored += list(each.parameters()) if isinstance(each, Module) else [each]
        options: dict[str, Any] = {
            "mesh": device_mesh or _mesh(strategy),
            "reshard_after_forward": strategy not in _KEPT,
            "mp_policy": MixedPrecisionPolicy(
                precision.param_dtype, precision.reduce_dtype, None, precision.cast_forward_inputs
            ),
            "ignored_params": ignored,
        }
        if param_init_fn is not None:
            module.apply(param_init_fn)
        if auto_wrap_policy is not None:

            def inner(child: Module, **overrides: Any) -> Module:
                return cls(child, **{**inherited, **overrides})

            inherited: dict[str, Any] = {
                "sharding_strategy": strategy, "mixed_precision": mixed_precision,
                "ignored_states": ignored, "device_mesh": options["mesh"],
            }  # fmt: skip
            wrap_by(auto_wrap_policy, module, inner)
        sharded: Any = fully_shard(module, **options)
        sharded.__class__ = _class_of(type(sharded))
        return sharded


def _mesh(strategy: ShardingStrategy) -> DeviceMesh | None:
    """Ranks with the same shards, times ranks that share; `None` if all share."""
    if strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
        return None
    size = dist.get_world_size()
    within = 1 if strategy is ShardingStrategy.NO_SHARD else local_size()
    return init_device_mesh("cpu", (size // within, within))


class FullyShardedDataParallel(metaclass=_Wrapping):
    """A module whose parameters, gradients and optimizer state are sharded over ranks.

    The module is sharded in place by `fully_shard` and returned: it stays of its own class, its
    parameters keep their names, and `.module` is the module itself. `state_dict()` has whole
    tensors.

    Args:
        module: the model.
        process_group: must be `None`.
        sharding_strategy: what ranks share; by default everything.
        auto_wrap_policy: which modules inside become units of their own; see
            `weft.distributed.fsdp.wrap`.
        mixed_precision: element types.
        ignored_modules, ignored_states: modules or parameters that stay whole.
        param_init_fn: called with each module first.
        device_mesh: as for `fully_shard`.
        cpu_offload, backward_prefetch, device_id, forward_prefetch: have no effect.
        limit_all_gathers, use_orig_params: have no effect.
        sync_module_states: has no effect: ranks start with the first's values.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> dist.init_process_group()
        >>> model = FullyShardedDataParallel(wf.nn.Linear(2, 1))
        >>> isinstance(model, FullyShardedDataParallel), tuple(model.state_dict()["weight"].shape)
        (True, (1, 2))
        >>> dist.destroy_process_group()
    """

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FSDPModule]:
        """The units of a model, the outermost first.

        Args:
            module: the model.
            root_only: whether to leave out units inside others.
        """
        units = [m for m in module.modules() if isinstance(m, FSDPModule)]
        return units[:1] if root_only else units

    @staticmethod
    def set_state_dict_type(
        module: Any, state_dict_type: StateDictType, state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> None:  # fmt: skip
        """Set what `state_dict()` and `optim_state_dict` give."""
        for unit in FullyShardedDataParallel.fsdp_modules(module):
            unit._stated = (state_dict_type, state_dict_config, optim_state_dict_config)  # type: ignore[attr-defined]

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Any, state_dict_type: StateDictType, state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> Iterator[None]:  # fmt: skip
        """Context of `set_state_dict_type`."""
        before = module._stated
        how = (state_dict_type, state_dict_config, optim_state_dict_config)
        FullyShardedDataParallel.set_state_dict_type(module, *how)
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(module, *before)

    @staticmethod
    def optim_state_dict(
        model: Any, optim: Optimizer, optim_state_dict: Any = None, group: Any = None
    ) -> Any:
        """An optimizer's state: of whole tensors by names, or a rank's own."""
        del group
        kind, _, config = model._stated
        if kind is not StateDictType.FULL_STATE_DICT:
            return optim.state_dict() if optim_state_dict is None else optim_state_dict
        return FullyShardedDataParallel._full_state(model, optim, config)

    @staticmethod
    def full_optim_state_dict(
        model: Any, optim: Optimizer, optim_input: Any = None, rank0_only: bool = True,
        group: Any = None,
    ) -> Any:  # fmt: skip
        """An optimizer's state, of whole tensors by names."""
        del optim_input, group
        config = FullStateDictConfig(rank0_only=rank0_only)
        return FullyShardedDataParallel._full_state(model, optim, config)

    @staticmethod
    def _full_state(model: Any, optim: Optimizer, config: Any) -> Any:
        before, model._stated = model._stated, (StateDictType.LOCAL_STATE_DICT, None, None)
        try:
            return get_optimizer_state_dict(model, optim, options=_whole(config))
        finally:
            model._stated = before

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Any, recurse: bool = True, writeback: bool = False, rank0_only: bool = False,
        offload_to_cpu: bool = False, with_grads: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """Context in which a model's parameters are whole, and must not be changed.

        Args:
            module: the model.
            recurse: whether those of units inside are whole, too.
            writeback, with_grads: must be false.
            rank0_only, offload_to_cpu: have no effect.

        Raises:
            ArgumentError: with `with_grads`.
        """
        del writeback, rank0_only, offload_to_cpu
        if with_grads:
            raise ArgumentError.here("summon_full_params: expected with_grads=False")
        units = FullyShardedDataParallel.fsdp_modules(module, root_only=not recurse)
        for unit in units:
            unit.unshard()
        try:
            yield
        finally:
            for unit in units:
                unit.reshard()


FSDP: Callable[..., Any] = FullyShardedDataParallel
