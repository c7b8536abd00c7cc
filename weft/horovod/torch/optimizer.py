"""`DistributedOptimizer`: an optimizer that reduces gradients over ranks before its update."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.collectives.elements import array, compute_pending, put
from weft.collectives.recorded import buckets_of, reduce_all
from weft.collectives.reduce_op import ReduceOp
from weft.collectives.rows import reduce_rows
from weft.eager.functions.api import Tensor, no_grad
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import OptimizerError
from weft.horovod import timeline
from weft.horovod.adasum import adasum
from weft.horovod.basics import Average
from weft.horovod.compression import Compressor, NoneCompressor
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.horovod.reduction import Adasum, Op, reduction_of
from weft.horovod.torch.compression import Compression
from weft.nn.parallel.alike import alike_or_told
from weft.nn.parallel.large import Large
from weft.optim.optimizer import Optimizer

BUCKET_BYTES: Final = 8 << 20


@dataclass
class _Setting:
    """How an optimizer's gradients are reduced.

    Attributes:
        parameters: in the order of their gradients, last layers first; groups are contiguous.
        counts: the number of parameters of each group; `None` without groups.
        by_rows: whether ranks may exchange the rows of large tables that they looked up.
    """

    parameters: list[Any]
    names: list[str]
    counts: list[int] | None
    op: Op
    compression: type[Compressor]
    predivide: float
    process_set: ProcessSet
    by_rows: bool
    skip: bool = False
    reduced: bool = False
    _large: Large | None = None
    _checked: bool = False

    def check_start(self) -> None:
        """Warn before the first update if ranks have different parameters, as Horovod trains them.

        Raises:
            DistributedError: their shapes differ.
        """
        if not self._checked and self.process_set.included():
            self._checked = True
            named = dict(zip(self.names, self.parameters, strict=True))
            told = alike_or_told("DistributedOptimizer", named, self.process_set.group)
            if told:
                text = f"{told}; call broadcast_parameters before if they are to be the same"
                warnings.warn(text, stacklevel=4)

    def reduce(self) -> None:
        """Reduce gradients; unused parameters contribute zeros, as in Horovod."""
        rows = zip(self.parameters, self.names, strict=True)
        trained = [(p, name) for p, name in rows if p.requires_grad]
        if not trained or not self.process_set.included():
            return
        for p, _ in trained:
            if p.grad is None:
                p.grad = p.detach().new_zeros(p.shape)
        counts = self._rows([p for p, _ in trained])
        tables = [p.grad for p, _ in trained if id(p) in counts]
        grads = [p.grad for p, _ in trained if id(p) not in counts]
        with no_grad():
            ys = self._reduced(grads) if grads else ()
            if tables:
                assert isinstance(self.op, ReduceOp)
                values, group = [g.lazy for g in tables], self.process_set.group
                ys = [*ys, *reduce_rows(values, list(counts.values()), group, self.op.value)]
        Tensor.replace_all([*grads, *tables], ys)
        if timeline.is_active():
            dense = [name for p, name in trained if id(p) not in counts]
            self._note([*dense, *[name for p, name in trained if id(p) in counts]], grads, tables)

    def _rows(self, parameters: Sequence[Any]) -> dict[int, int]:
        """The number of rows that a rank sends of each row-sparse gradient, by parameter ID."""
        if not self.by_rows:
            return {}
        if self._large is None:
            self._large = Large(parameters, self.process_set.group, products=False)
        counts = self._large.exchanged().tables
        return {id(p): counts[id(p)] for p in parameters if id(p) in counts}

    def _reduced(self, grads: Sequence[Tensor]) -> Sequence[Any]:
        """Record the reductions, as part of the program that computes the gradients."""
        assert isinstance(self.op, ReduceOp)
        group, op, before, behind = self.process_set.group, self.op.value, 1.0, 1.0
        if self.predivide != 1.0:  # divide before and after the sum
            op, before, behind = "sum", 1.0 / self.predivide, self.predivide / group.size
        sent = [g if before == 1.0 else g * before for g in grads]
        compress = self.compression
        pairs = [compress.compress(g) for g in sent]
        sent = [g for g, _ in pairs]
        sums = reduce_all([g.lazy for g in sent], op, group, BUCKET_BYTES, self._counts(grads))
        if compress is NoneCompressor and behind == 1.0:
            return sums
        ys = [compress.decompress(wrap(y), c) for y, (_, c) in zip(sums, pairs, strict=True)]
        scaled = [y if behind == 1.0 else y * behind for y in ys]
        return [y.to(x.dtype).lazy for y, x in zip(scaled, grads, strict=True)]

    def _counts(self, grads: Sequence[Tensor]) -> list[int] | None:
        """A bucket for each group; `None`, for buckets by size, if some gradients are missing."""
        return self.counts if self.counts and sum(self.counts) == len(grads) else None

    def _note(
        self, names: Sequence[str], grads: Sequence[Tensor], tables: Sequence[Tensor]
    ) -> None:  # fmt: skip
        """Compute now, and record each bucket's all-reduce under its parameters' names."""
        tally = self.process_set.group.transport.tally
        kept, tally.spans = tally.spans, []
        waited = dict(tally.waited)
        compute_pending()
        spans, tally.spans = tally.spans, kept
        if kept is not None:
            kept.extend(spans)
        late = max([s - waited.get(r, 0.0) for r, s in tally.waited.items()], default=0.0)
        counts = self._counts(grads) or buckets_of([g.numel() * 4 for g in grads], BUCKET_BYTES)
        counts = [*counts, *[len(tables)] * bool(tables)]
        timeline.note_buckets(names, counts, spans, late)


class _Distributed:
    """Mixin: reduces gradients over ranks before the update."""

    _hvd: _Setting

    @property
    def _parameter_names(self) -> dict[Any, str]:
        return dict(zip(self._hvd.parameters, self._hvd.names, strict=True))

    def synchronize(self) -> None:
        """Reduce gradients now, for example to clip them before `step`; see `skip_synchronize`."""
        self._hvd.reduce()
        self._hvd.reduced = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Context in which `step` uses gradients as they are."""
        self._hvd.skip = True
        try:
            yield
        finally:
            self._hvd.skip = False

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Set the number of backward passes before `step`; gradients accumulate."""
        _check_passes(passes)

    def step(self, closure: Any = None) -> Any:
        """Reduce the gradients over ranks, then update."""
        self._hvd.check_start()
        if not self._hvd.skip:
            if self._hvd.reduced:
                text = "optimizer.step() called without optimizer.skip_synchronize() context"
                warnings.warn(f"{text} after optimizer.synchronize()", stacklevel=2)
            self.synchronize()
        self._hvd.reduced = False
        return super().step(closure)  # pyright: ignore[reportAttributeAccessIssue]


class _DistributedAdasum(_Distributed):
    """Mixin: each rank applies its own update; the changes are combined by Adasum."""

    def synchronize(self) -> None:
        """Do nothing: gradients stay local."""

    def step(self, closure: Any = None) -> Any:
        """Update, then combine the ranks' changes of parameters."""
        setting = self._hvd
        setting.check_start()
        before = [array(p).copy() for p in setting.parameters]
        loss = super(_Distributed, self).step(closure)  # pyright: ignore[reportAttributeAccessIssue]
        for p, old in zip(setting.parameters, before, strict=True):
            change, ctx = setting.compression.compress(wrap(leaf(array(p) - old)))
            whole = wrap(leaf(adasum(setting.process_set.group, array(change))))
            put(p, old + array(setting.compression.decompress(whole, ctx)).astype(old.dtype))
        return loss


def _check_passes(passes: int) -> None:
    if passes < 1:
        raise OptimizerError.here(
            f"DistributedOptimizer: expected backward_passes_per_step from 1, got {passes}"
        )


def DistributedOptimizer(
    optimizer: Optimizer, named_parameters: Iterable[tuple[str, Any]] | None = None,
    compression: type[Compressor] = Compression.none, backward_passes_per_step: int = 1,
    op: Any = Average, gradient_predivide_factor: float = 1.0,
    groups: int | Sequence[Sequence[Any]] | None = None, sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Wrap an optimizer so that `step` first reduces gradients over all ranks.

    Args:
        optimizer: any optimizer of `weft.optim`; it shares its state with the result.
        named_parameters: names for the timeline; by default parameters are numbered.
        compression: `hvd.Compression.fp16` sends gradients as float16.
        backward_passes_per_step: the number of backward passes before `step`; gradients
            accumulate.
        op: `hvd.Average`, `hvd.Sum`, or `hvd.Adasum`: each rank applies its own update, and the
            changes of each parameter are combined.
        gradient_predivide_factor: an average divides by this factor before the sum, and by
            size / factor after it.
        groups: lists of parameters whose gradients are reduced together, or the number of lists
            of equal length. Parameters in no list are reduced one by one.
        sparse_as_dense: whether row-sparse gradients of large tables (2^20 elements and more) are
            reduced as dense ones. If not, ranks exchange the rows that they looked up, and the
            optimizer updates only these. Needs a sum or an average without compression and
            predivide factor.
        process_set: the ranks that take part.

    Raises:
        OptimizerError: names occur twice, parameters are not the optimizer's, or a predivide
            factor without `hvd.Average`.

    The first `step` warns if ranks have different parameters; call `broadcast_parameters` before.
    """
    own = [p for group in optimizer.param_groups for p in group["params"]]
    names = _names_of(own, named_parameters)
    _check_passes(backward_passes_per_step)
    reduction = reduction_of(op, None, "DistributedOptimizer")
    if gradient_predivide_factor != 1.0 and reduction is not ReduceOp.AVG:
        raise OptimizerError.here(
            "DistributedOptimizer: expected op=hvd.Average with a gradient_predivide_factor, got "
            f"{reduction}"
        )
    ordered, counts = _grouped(own, groups)
    by_rows = reduction in (ReduceOp.AVG, ReduceOp.SUM) and gradient_predivide_factor == 1.0
    by_rows = by_rows and compression is NoneCompressor and not sparse_as_dense
    setting = _Setting(
        ordered, [names.get(id(p), f"parameter.{i}") for i, p in enumerate(ordered)], counts,
        reduction, compression, gradient_predivide_factor, process_set, by_rows,
    )  # fmt: skip
    original = type(optimizer)
    base = _DistributedAdasum if reduction is Adasum else _Distributed
    wrapped: Any = object.__new__(type(f"Distributed{original.__name__}", (base, original), {}))
    wrapped.__dict__ = optimizer.__dict__
    wrapped.__dict__["_hvd"] = setting
    return wrapped


def _names_of(own: Sequence[Any], named: Iterable[tuple[str, Any]] | None) -> dict[int, str]:
    """The name of each parameter of an optimizer, by its id.

    Raises:
        OptimizerError: the names are not unique, or the parameters are not the optimizer's.
    """
    if named is None:
        return {id(p): f"allreduce.noname.{i}" for i, p in enumerate(own)}
    pairs: list[Any] = list(named)
    wrong = ""
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):  # pyright: ignore
        wrong = "something else than pairs of a name and a parameter: pass model.named_parameters()"
    elif len({name for name, _ in pairs}) != len(pairs):
        wrong = "a name twice"
    elif {id(p) for _, p in pairs} - {id(p) for p in own}:
        wrong = "parameters of another model"
    elif missing := [i for i, p in enumerate(own) if id(p) not in {id(q) for _, q in pairs}]:
        wrong = f"no name of its parameters {missing}"
    if wrong:
        raise OptimizerError.here(
            "DistributedOptimizer: named_parameters: expected the optimizer's parameters, each "
            f"with a name of its own, got {wrong}"
        )
    return {id(p): name for name, p in pairs}


def _grouped(
    own: list[Any], groups: int | Sequence[Sequence[Any]] | None
) -> tuple[list[Any], list[int] | None]:
    """Parameters in the order of their reductions, and the number of each group."""
    if groups is None:
        return own[::-1], None
    if isinstance(groups, int):
        if groups < 1:
            raise OptimizerError.here(f"DistributedOptimizer: expected groups from 1, got {groups}")
        size = -(-len(own) // min(groups, len(own)))
        lists = [own[i : i + size] for i in range(0, len(own), size)]
    else:
        lists = [list(each) for each in groups if len(each)]
    chosen = [id(p) for each in lists for p in each]
    if len(set(chosen)) != len(chosen) or set(chosen) - {id(p) for p in own}:
        raise OptimizerError.here(
            "DistributedOptimizer: groups: expected parameters of the optimizer, each in one list"
        )
    lists += [[p] for p in own if id(p) not in chosen]
    place = {id(p): i for i, p in enumerate(own)}
    lists.sort(key=lambda each: -max(place[id(p)] for p in each))
    return [p for each in lists for p in each], [len(each) for each in lists]
