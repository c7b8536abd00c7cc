"""`tf.train.SyncReplicasOptimizer`: workers whose gradients make one step together.

Each variable has an accumulator where it lies. A worker gives its gradients to the accumulators,
which drop those of an earlier step, and then waits for a token. The chief's thread takes the mean
of enough gradients, applies it, counts the step, and puts tokens into a queue, each with the number
of the step: one for each worker, so that it can begin the next one.

Source: Chen et al., "Revisiting Distributed Synchronous SGD", 2016, for backup workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import ArgumentError, DTypeError, GraphError, StateError
from weft.tf1 import logging
from weft.tf1.control.dependency import group, no_op
from weft.tf1.creation import fill
from weft.tf1.data_flow.accumulator import ConditionalAccumulator, SparseConditionalAccumulator
from weft.tf1.data_flow.queue import FIFOQueue
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.default_graph import colocate_with, control_dependencies, device
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.train.hook.run_hook import SessionRunHook
from weft.tf1.train.monitored.session_manager import missing_by
from weft.tf1.train.moving_averages import ExponentialMovingAverage
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.train.queue_runner import QueueRunner
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_list import global_variables, report_uninitialized_variables


class SyncReplicasOptimizer(Optimizer):
    """Applies the mean of several workers' gradients; drops those that come too late.

    Args:
        opt: the optimizer that applies it.
        replicas_to_aggregate: how many gradients make a step.
        total_num_replicas: the number of workers, the same by default. Those beyond
            `replicas_to_aggregate` are backups: the slowest gradients of each step are dropped.
        variable_averages: averages that are updated with each step.
        variables_to_average: the variables that have them.
        use_locking: accepted; updates are never mixed.
        name: the scope of the operations.

    Attributes:
        local_step_init_op: lets a worker begin at the current step.
        chief_init_op: the same for the chief, and for the accumulators.
        ready_for_local_init_op: gives the names of variables that these need and that are missing.

    Example:
        >>> import weft.tf1 as tf
        >>> with tf.Graph().as_default():
        ...     w, step = tf.Variable(1.0), tf.train.get_or_create_global_step()
        ...     descent = tf.train.GradientDescentOptimizer(0.25)
        ...     together = tf.train.SyncReplicasOptimizer(descent, 1)
        ...     train = together.minimize(w * w, global_step=step)
        ...     hooks = [together.make_session_run_hook(True), tf.train.StopAtStepHook(3)]
        ...     with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        ...         while not session.should_stop():
        ...             _ = session.run(train)
    """

    def __init__(
        self, opt: Optimizer, replicas_to_aggregate: int, total_num_replicas: int | None = None,
        variable_averages: ExponentialMovingAverage | None = None,
        variables_to_average: Sequence[Any] | None = None, use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        logging.info("SyncReplicas: %s of %s replicas make a step", replicas_to_aggregate, total)
        self._opt, self._count, self._total = opt, replicas_to_aggregate, total
        self._averages = variable_averages, variables_to_average
        self._runner: QueueRunner | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Those of the optimizer: see `Optimizer.compute_gradients`."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Operation:
        """The operation that each worker runs: gives its gradients, and waits for the step.

        Args:
            grads_and_vars: pairs as of `compute_gradients`.
            global_step: the variable that counts the steps.
            name: not used.

        Raises:
            GraphError: there are no variables, or no step to tell which gradients are late.
        """
        del name
        pairs = list(grads_and_vars)
        if not pairs:
            raise fail(GraphError, "apply_gradients: expected variables, got none")
        if not isinstance(global_step, Variable):
            text = f"expected a global step, by which late gradients are known, got {global_step!r}"
            raise fail(GraphError, f"SyncReplicasOptimizer: {text}")
        self._step = global_step
        self._make_local_step(global_step)
        with name_scope(None, self._name):
            given, taken = self._exchanged(pairs)
            with device(global_step.device), name_scope(""):
                update = self._opt.apply_gradients(taken, global_step)
                self._queue = FIFOQueue(
                    -1, global_step.dtype.base_dtype, shapes=(), name="sync_token_q",
                    shared_name="sync_token_q",
                )  # fmt: skip
                with control_dependencies(given):
                    token = self._queue.dequeue()
                train = self._local_step.assign(token)
                # A runner closes its queue when it stops, and the tokens are for all workers.
                own = FIFOQueue(1, int32, shapes=(), name="dummy_queue", shared_name="dummy_queue")
                self._runner = QueueRunner(own, [self._synchronize(update)])
            self.chief_init_op = self._chief_init()
        return train.op

    def _make_local_step(self, global_step: Variable) -> None:
        anchor = no_op()  # on the worker's own task, where the local step belongs, too
        with colocate_with(anchor):
            self._local_step = Variable(
                0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype.base_dtype, name="sync_rep_local_step",
            )  # fmt: skip
        self.local_step_init_op = self._local_step.assign(global_step.value()).op
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())

    def _exchanged(self, pairs: Sequence[tuple[Any, Variable]]) -> tuple[list[Any], list[Any]]:
        """The operations that give gradients; and the pairs of means and variables."""
        given: list[Operation] = []
        taken: list[tuple[Any, Variable]] = []
        self._accumulators: list[tuple[Any, str]] = []
        for gradient, variable in pairs:
            if gradient is None:
                taken.append((None, variable))
                continue
            with device(variable.device):
                accumulator, gives, mean = self._accumulated(gradient, variable)
            given.append(gives)
            taken.append((mean, variable))
            self._accumulators.append((accumulator, variable.device))
        return given, taken

    def _accumulated(self, gradient: Any, variable: Variable) -> tuple[Any, Operation, Any]:
        step, name = self._local_step.value(), variable.name + "/grad_accum"
        if isinstance(gradient, IndexedSlices):
            sparse = SparseConditionalAccumulator(gradient.dtype, shape=(), shared_name=name)
            gives = sparse.apply_indexed_slices_grad(gradient, step)
            return sparse, gives, sparse.take_indexed_slices_grad(self._count)
        if not isinstance(gradient, Tensor):
            text = f"expected tensors or IndexedSlices as gradients, got {gradient!r}"
            raise fail(DTypeError, f"SyncReplicasOptimizer: {text}")
        shape = variable.shape
        dense = ConditionalAccumulator(gradient.dtype, shape=shape, shared_name=name)
        return dense, dense.apply_grad(gradient, step), dense.take_grad(self._count)

    def _synchronize(self, update: Operation) -> Operation:
        """What the chief's thread repeats: one step of all."""
        with control_dependencies([update]):
            tokens = fill([max(self._total, self._count)], self._step.read_value())
            done = self._queue.enqueue_many((tokens,))
        averages, variables = self._averages
        if averages is None:
            return done
        with control_dependencies([done]), name_scope(""):
            return averages.apply(variables)

    def _chief_init(self) -> Operation:
        sets: list[Operation] = [self.local_step_init_op]
        for accumulator, place in self._accumulators:
            with device(place):
                sets.append(accumulator.set_global_step(self._step.value(), name="SetGlobalStep"))
        return group(*sets)

    def get_chief_queue_runner(self) -> QueueRunner:
        """The thread of the chief, which makes the steps.

        Raises:
            GraphError: there are no gradients yet.
        """
        if self._runner is None:
            raise fail(
                GraphError, "get_chief_queue_runner: should be called after apply_gradients()"
            )
        return self._runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Puts the first tokens into the queue, which a chief runs once.

        Args:
            num_tokens: how many; `replicas_to_aggregate` by default. Fewer workers than gradients
                of a step need at least the difference.

        Raises:
            GraphError: there are no gradients yet.
            ArgumentError: there would be too few.
        """
        if self._runner is None:
            raise fail(GraphError, "get_init_tokens_op() should be called after apply_gradients()")
        needed = self._count - self._total
        if num_tokens == -1:
            num_tokens = self._count
        elif num_tokens < needed:
            text = f"expected at least {needed} tokens to end the first step, got {num_tokens}"
            raise fail(ArgumentError, f"get_init_tokens_op: {text}")
        if num_tokens <= 0:
            return no_op(name="no_init_tokens")
        with device(self._step.device), name_scope(""):
            return self._queue.enqueue_many((fill([num_tokens], self._step.value()),))

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """A hook that initializes a worker, and starts the chief's thread.

        Args:
            is_chief: whether this worker is the chief.
            num_tokens: as of `get_init_tokens_op`.
        """
        return _Hook(self, is_chief, num_tokens)

    @property
    def has_gradients(self) -> bool:
        """Whether `apply_gradients` was called."""
        return self._runner is not None

    # of the optimizer
    def get_slot(self, var: Any, name: str) -> Variable | None:
        """The slot `name` of `var`, or `None`."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Names of the slots, sorted."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Variable]:
        """All variables that the optimizer created, sorted by name."""
        return self._opt.variables()


class _Hook(SessionRunHook):
    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._optimizer, self._is_chief, self._tokens = optimizer, is_chief, num_tokens

    def begin(self) -> None:
        """Make what it needs, before the graph is finalized."""
        optimizer = self._optimizer
        if not optimizer.has_gradients:
            text = "SyncReplicasOptimizer.apply_gradient should be called before using the hook"
            raise fail(GraphError, text)
        self._ready = optimizer.ready_for_local_init_op
        if self._is_chief:
            self._init = optimizer.chief_init_op
            self._runner = optimizer.get_chief_queue_runner()
            self._first = optimizer.get_init_tokens_op(self._tokens)
        else:
            self._init, self._runner, self._first = optimizer.local_step_init_op, None, None

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Begin at the current step."""
        missing = missing_by(self._ready, session)
        if missing:
            text = f"expected all variables to have a value, but {missing} have none"
            raise fail(StateError, f"SyncReplicasOptimizer: {text}")
        session.run(self._init)
        if self._first is not None:
            session.run(self._first)
        if self._runner is not None:
            self._runner.create_threads(session, coord=coord, daemon=True, start=True)
