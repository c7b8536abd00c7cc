"""`ModelPruning`: zeroes entries of parameters while training goes on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.eager.functions.api import no_grad
from weft.errors import ArgumentError
from weft.nn import Module as NNModule
from weft.nn import ModuleDict, ModuleList, Parameter, Sequential
from weft.nn.utils import prune
from weft.train.callbacks.callback import Callback
from weft.train.utilities.rank_zero import rank_zero_info

__all__ = ["ModelPruning"]

Pairs = Sequence[tuple[NNModule, str]]
METHODS: Final[dict[str, Any]] = {
    "ln_structured": prune.LnStructured, "l1_unstructured": prune.L1Unstructured,
    "random_structured": prune.RandomStructured, "random_unstructured": prune.RandomUnstructured,
}  # fmt: skip


class ModelPruning(Callback):
    """Prunes after each epoch, by `weft.nn.utils.prune`; checkpoints have the pruned values.

    A subclass may override `filter_parameters_to_prune`.

    Args:
        pruning_fn: `"l1_unstructured"`, `"random_unstructured"`, `"ln_structured"`,
            `"random_structured"`, or a class derived from `BasePruningMethod`.
        parameters_to_prune: pairs of a module and a parameter's name; by default all weights and
            biases.
        parameter_names: of the default: `"weight"`, `"bias"` or both.
        use_global_unstructured: whether all entries are ranked together.
        amount: the part (float) or number (int) of entries to prune; or a function of the epoch.
        apply_pruning: whether to prune; or a function of the epoch.
        make_pruning_permanent: whether masks are applied, and removed, when training ends.
        use_lottery_ticket_hypothesis: whether the entries that are left get their first values
            again; or a function of the epoch. Lightning's copy of them changes with training after
            the first time; here they stay.
        resample_parameters: whether they get new random values instead.
        pruning_dim: the dimension of structured pruning.
        pruning_norm: the exponent of `"ln_structured"`.
        verbose: 1 logs how much is pruned, 2 for each parameter.
        prune_on_train_epoch_end: prune after training epochs (true) or validations (false).

    Raises:
        ArgumentError: an argument is unknown, lacks another one, or does not fit the others.

    Source: Frankle and Carbin, "The Lottery Ticket Hypothesis", 2018.
    """

    PARAMETER_NAMES = ("weight", "bias")

    def __init__(
        self, pruning_fn: Any, parameters_to_prune: Pairs = (),
        parameter_names: Sequence[str] | None = None, use_global_unstructured: bool = True,
        amount: float | Callable[[int], float] = 0.5,
        apply_pruning: bool | Callable[[int], bool] = True, make_pruning_permanent: bool = True,
        use_lottery_ticket_hypothesis: bool | Callable[[int], bool] = True,
        resample_parameters: bool = False, pruning_dim: int | None = None,
        pruning_norm: int | None = None, verbose: int = 0, prune_on_train_epoch_end: bool = True,
    ) -> None:  # fmt: skip
        self.pruning_fn = method = METHODS.get(str(pruning_fn).lower(), pruning_fn)
        self._names = parameter_names or self.PARAMETER_NAMES
        _check(method, pruning_fn, use_global_unstructured, pruning_dim, pruning_norm)
        if odd := sorted(set(self._names).difference(self.PARAMETER_NAMES)):
            raise ArgumentError.here(
                f"ModelPruning: expected parameter_names among {self.PARAMETER_NAMES}, got {odd}"
            )
        self._options: dict[str, Any] = {} if pruning_dim is None else {"dim": pruning_dim}
        self._options |= {"n": pruning_norm} if method is prune.LnStructured else {}
        self._pairs, self._is_global = parameters_to_prune, use_global_unstructured
        self.amount, self._applies, self._verbose = amount, apply_pruning, verbose
        self._is_permanent, self._wins = make_pruning_permanent, use_lottery_ticket_hypothesis
        self._resamples, self._after_epochs = resample_parameters, prune_on_train_epoch_end
        self._first: dict[int, NNModule] = {}

    def filter_parameters_to_prune(self, parameters_to_prune: Pairs = ()) -> Pairs:
        """The pairs that are pruned, of those that were given or found."""
        return parameters_to_prune

    @staticmethod
    def sanitize_parameters_to_prune(
        pl_module: Any, parameters_to_prune: Pairs = (), parameter_names: Sequence[str] = ()
    ) -> Pairs:
        """The given pairs, or those of all layers.

        Raises:
            ArgumentError: a pair is not of the module.
        """
        containers = (Sequential, ModuleList, ModuleDict)
        own = [m for m in pl_module.modules() if m is not pl_module]
        own = [m for m in own if not isinstance(m, containers)]
        names = parameter_names or ModelPruning.PARAMETER_NAMES
        found = [(m, n) for n in names for m in own if isinstance(getattr(m, n, None), Parameter)]
        for pair in parameters_to_prune:
            if len(pair) != 2 or pair[0] not in own or not hasattr(*pair):
                raise ArgumentError.here(
                    "ModelPruning: expected pairs of one of the module's layers and a parameter's "
                    f"name, got {pair!r:.200}"
                )
        return parameters_to_prune or found

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Find the parameters, and keep their first values."""
        found = self.sanitize_parameters_to_prune(pl_module, self._pairs, self._names)
        self._pairs = self.filter_parameters_to_prune(found)
        if self._wins:
            self._first = {id(m): copy.deepcopy(m) for m, _ in self._pairs}

    def apply_pruning(self, amount: float) -> None:
        """Prune more of the remaining entries."""
        before = self._zeros()
        if self._is_global:
            prune.global_unstructured(self._pairs, self.pruning_fn, amount=amount, **self._options)
        else:
            for module, name in self._pairs:
                self.pruning_fn.apply(module, name, amount=amount, **self._options)
        if self._verbose:
            self._tell(before, self._zeros())

    def _zeros(self) -> list[tuple[int, int]]:
        """For each parameter, how many entries are masked, and of how many."""
        masks = [getattr(m, f"{n}_mask", None) for m, n in self._pairs] if self._verbose else []
        return [(0, 1) if x is None else (int((x == 0).sum()), x.numel()) for x in masks]

    def _tell(self, before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
        zeros, count = [sum(x) for x in zip(*after, strict=True)]
        was = sum(z for z, _ in before)
        name = self.pruning_fn.__name__
        rank_zero_info(f"{name}: {was} -> {zeros} of {count} entries ({zeros / count:.2%})")
        shown = list(zip(self._pairs, after, strict=True)) if self._verbose > 1 else ()
        for (module, of), (z, n) in shown:
            rank_zero_info(f"{name} of {module!r}.{of}: {z} of {n} entries ({z / n:.2%})")

    def apply_lottery_ticket_hypothesis(self) -> None:
        """Give the entries that are left their first values again, or new ones."""
        for first in self._first.values() if self._resamples else ():
            if hasattr(first, "reset_parameters"):
                first.reset_parameters()  # type: ignore[operator]
        with no_grad():
            for module, name in self._pairs:
                own = getattr(module, f"{name}_orig", None)
                (getattr(module, name) if own is None else own).copy_(
                    getattr(self._first[id(module)], name)
                )

    def make_pruning_permanent(self, module: NNModule) -> None:
        """Apply all masks in a module, and remove them."""
        for layer in module.modules():
            for name in [n.removesuffix("_mask") for n, _ in layer.named_buffers(recurse=False)]:
                if hasattr(layer, f"{name}_mask") and hasattr(layer, f"{name}_orig"):
                    prune.remove(layer, name)

    def _run(self, epoch: int) -> None:
        applies, amount, wins = [
            x(epoch) if callable(x) else x for x in (self._applies, self.amount, self._wins)
        ]
        if applies and amount:
            self.apply_pruning(amount)
            if wins:
                self.apply_lottery_ticket_hypothesis()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Prune, unless validations are awaited."""
        if self._after_epochs:
            self._run(trainer.current_epoch)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Prune, unless training epochs are awaited."""
        if not (self._after_epochs or trainer.sanity_checking):
            self._run(trainer.current_epoch)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Make the pruned values the parameters."""
        if self._is_permanent:
            self.make_pruning_permanent(pl_module)

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Save the pruned values in place of masks."""
        if not self._is_permanent:
            return
        state = dict(checkpoint["state_dict"])
        for name in [n.removesuffix("_mask") for n in state if n.endswith("_mask")]:
            mask = state.pop(f"{name}_mask")
            orig = state.pop(f"{name}_orig")
            state[name] = mask.to(orig.dtype) * orig
        checkpoint["state_dict"] = state


def _check(method: Any, given: Any, is_global: bool, dim: int | None, norm: int | None) -> None:
    """Refuse a method that is unknown, or does not fit the other arguments."""
    problem = ""
    if not (isinstance(method, type) and issubclass(method, prune.BasePruningMethod)):
        problem = f"pruning_fn among {sorted(METHODS)}, or a class of BasePruningMethod"
    elif is_global and method.PRUNING_TYPE != "unstructured":
        problem = "an unstructured pruning_fn with use_global_unstructured=True"
    elif not is_global and method not in METHODS.values():
        problem = f"pruning_fn among {sorted(METHODS)} with use_global_unstructured=False"
    elif str(given).lower().endswith("_structured") and dim is None:
        problem = "pruning_dim with a structured pruning_fn"
    elif method is prune.LnStructured and norm is None:
        problem = "pruning_norm with 'ln_structured'"
    if problem:
        raise ArgumentError.here(f"ModelPruning: expected {problem}, got {given!r}")
