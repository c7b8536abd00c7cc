"""The processor time of a program's first steps, of all its processes.

`MADE_STEPS` is their number, `MADE_SECONDS` a limit of processor time, and `MADE_TIMES` the file
for the result. Time begins when the first optimizer is made and ends when the parameters of the
last step are there: compiling and the work of compiler processes are in it, imports are not. No
other step is read, which would make another one of it. The program ends there. JAX has no optimizer
to watch: time is that of the whole program from the import of JAX, and the list says its steps.
"""

import atexit
import contextlib
import functools
import importlib
import json
import os
import threading
from pathlib import Path

import psutil
from imported import has_train_op, owner_of, when_imported

STEPS, SECONDS = int(os.environ["MADE_STEPS"]), float(os.environ["MADE_SECONDS"])
TIMES = Path(os.environ["MADE_TIMES"])


def used():
    """Seconds of the processor that this process and those that it started have taken."""
    own = psutil.Process()
    times = [own.cpu_times()]
    for child in own.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended
            times.append(child.cpu_times())
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


class Timed:
    """Counts steps, and writes what they took."""

    def __init__(self):
        self.begun, self.steps, self.first, self.done = None, 0, None, False
        atexit.register(self.write)

    def begin(self, optimizer):
        """Watch a class of optimizers: time begins when the first of all is made."""
        made = optimizer.__init__

        @functools.wraps(made)
        def begin(optimizer, *args, **options):
            if self.begun is None:
                self.begun = used()
            made(optimizer, *args, **options)

        optimizer.__init__ = begin

    def count(self, read):
        """Count a step; end the program after the last. `read` waits for its parameters."""
        self.steps += 1
        if self.steps == 1 or self.steps % 10 == 0 or self.steps == STEPS:
            ends = self.steps == STEPS or used() - self.begun > SECONDS
            if ends or self.steps == 1:
                read()
            now = used() - self.begun
            self.first = now if self.first is None else self.first
            if ends:
                self.write(now)
                for child in psutil.Process().children(recursive=True):
                    child.kill()
                os._exit(0)

    def write(self, now=None):
        """Write the result, once."""
        if self.steps and not self.done and threading.current_thread() is threading.main_thread():
            self.done = True
            now = used() - self.begun if now is None else now
            found = {
                "steps": self.steps,
                "first": round(self.first or now, 2),
                "processor": round(now, 2),
            }
            TIMES.write_text(json.dumps(found))


class TorchTimed(Timed):
    """Counts steps of optimizers, those of wrapped optimizers once."""

    def __init__(self, torch):
        super().__init__()
        self.begin(torch.optim.Optimizer)
        importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(
            self.stepped
        )

    def stepped(self, optimizer, args, options):
        """Count a step."""
        last = optimizer.param_groups[-1]["params"][-1]
        self.count(lambda: last.detach().reshape(-1)[:1].tolist())


class TensorFlowTimed(Timed):
    """Counts runs of sessions that train, steps of optimizers at once, and batches of `fit`."""

    def __init__(self, tensorflow):
        super().__init__()
        self.tf, self.trains = tensorflow, {}
        optimizers = [
            value
            for module in (tensorflow.keras.optimizers, getattr(tensorflow, "train", None))
            for name in dir(module)
            if isinstance(value := getattr(module, name, None), type)
            and hasattr(value, "apply_gradients")
        ]
        for optimizer in dict.fromkeys(optimizers):
            self.begin(optimizer)
        for owner in {owner_of(each, "apply_gradients") for each in optimizers}:
            self.wrap(owner, "apply_gradients", self.applied)
        self.wrap(owner_of(tensorflow.compat.v1.Session, "run"), "run", self.ran)
        model = tensorflow.keras.Model
        self.wrap(owner_of(model, "fit"), "fit", self.fitted)
        self.wrap(owner_of(model, "train_on_batch"), "train_on_batch", self.trained)
        self.inside = False

    def wrap(self, owner, name, function):
        """Replace a method; a call of it within one that counts is not counted."""
        method = vars(owner)[name]

        @functools.wraps(method)
        def call(*args, **options):
            if self.inside:
                return method(*args, **options)
            return function(method, *args, **options)

        setattr(owner, name, call)

    def within(self, method, *args, **options):
        """A call in which nothing else is counted."""
        self.inside = True
        try:
            return method(*args, **options)
        finally:
            self.inside = False

    def applied(self, method, optimizer, grads_and_vars, *args, **options):
        """Count a step of an optimizer, if it takes place at once."""
        pairs = list(grads_and_vars)
        found = method(optimizer, pairs, *args, **options)
        if self.tf.executing_eagerly():
            self.count(pairs[-1][1].numpy)
        return found

    def fitted(self, method, model, *args, **options):
        """Count the batches of `fit`."""

        class Count(self.tf.keras.callbacks.Callback):
            def on_train_batch_end(_, batch, logs=None):
                self.count(lambda: None)

        options["callbacks"] = [*(options.get("callbacks") or []), Count()]
        return self.within(method, model, *args, **options)

    def trained(self, method, model, *args, **options):
        """Count a call of `train_on_batch`."""
        found = self.within(method, model, *args, **options)
        self.count(lambda: None)
        return found

    def ran(self, method, session, fetches, *args, **options):
        """Count a run of a session, if an optimizer's operation is in it."""
        found = method(session, fetches, *args, **options)
        key = str(fetches)
        if key not in self.trains:
            self.trains[key] = has_train_op(session.graph, fetches)
        if self.trains[key]:
            self.count(lambda: None)
        return found


class JaxTimed(Timed):
    """Measures a program from here to its end."""

    def __init__(self, jax):
        super().__init__()
        for module, name in (("numpy", "sin"), ("random", "key"), ("lax", "add"), ("nn", "relu")):
            getattr(importlib.import_module(f"jax.{module}"), name)
        _ = jax.jit
        self.begun, self.steps = used(), STEPS


KINDS = {"tensorflow": TensorFlowTimed, "torch": TorchTimed, "jax": JaxTimed}
when_imported(KINDS[os.environ["MADE_TIMED"]], os.environ["MADE_TIMED"])
