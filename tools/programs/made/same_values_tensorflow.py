# ruff: noqa: D102
"""The same random numbers and initial weights under TensorFlow 1 and Weft, and a program's losses.

`MADE_VALUES` names a folder: the first program writes the variables before its first run of a
session that trains, later ones read them, by name. Losses are the scalars that this run and those
after it return. What a program draws by name is NumPy's numbers, and dropout passes everything:
those inside layers, cells and datasets are not the same in both. For programs of tf.keras
(`MADE_KERAS`), models begin `fit` with NumPy's numbers and keep the order of rows; losses are those
of epochs.
"""

import atexit
import json
import os
import random
import sys
from pathlib import Path

import numpy as np
from imported import has_train_op, owner_of, when_imported

FOLDER = Path(os.environ["MADE_VALUES"])
FIRST = not (FOLDER / "losses-tensorflow.json").exists()
LOSSES = FOLDER / f"losses-{'tensorflow' if FIRST else 'weft'}.json"
MOST = 200
"""Losses that are kept."""


class Same:
    """What is replaced, and what is watched."""

    def __init__(self, tf):
        self.tf, self.drawn, self.begun = tf, 0, False
        self.losses, self.trains = [], {}
        random.seed(0)
        np.random.seed(0)
        rng = lambda: np.random.default_rng(self.drawn)  # noqa: E731
        normal = lambda dims, mean=0.0, stddev=1.0: rng().normal(mean, stddev, dims)  # noqa: E731
        self.replace(("random_normal", "random.normal", "truncated_normal"), normal)
        self.replace(("random_uniform", "random.uniform"), self.uniform)
        for module, name in ((tf.nn, "dropout"), (getattr(tf, "layers", None), "dropout")):
            if module is not None:
                setattr(module, name, lambda x, *args, **options: tf.identity(x))
        owner = owner_of(tf.compat.v1.Session, "run")
        run = owner.run
        owner.run = lambda session, fetches, *args, **options: self.ran(
            run, session, fetches, *args, **options
        )
        atexit.register(lambda: LOSSES.write_text(json.dumps(self.losses)))

    def uniform(self, dims, minval=0, maxval=None):
        high = 1.0 if maxval is None else maxval
        return np.random.default_rng(self.drawn).uniform(minval, high, dims)

    def replace(self, names, draw):
        """Draw what has a known shape from NumPy's numbers."""
        for name in names:
            *parts, last = name.split(".")
            module = self.tf
            for part in parts:
                module = getattr(module, part)
            setattr(module, last, self.constant(getattr(module, last), draw))

    def constant(self, original, draw):
        def function(shape, *args, dtype=None, seed=None, name=None, **options):
            kind = self.tf.as_dtype(dtype or "float32")
            try:
                dims = tuple(int(n) for n in shape)
                self.drawn += 1
                found = draw(dims, *args, **options).astype(kind.as_numpy_dtype)
            except (NotImplementedError, TypeError, ValueError):  # tensors are given
                return original(shape, *args, dtype=kind, seed=seed, name=name, **options)
            return self.tf.constant(found, name=name)

        return function

    def begin(self, session):
        """Write or read all variables."""
        file = FOLDER / "variables.npz"
        with session.graph.as_default():
            ours = {v.name: v for v in self.tf.global_variables()}
        if FIRST:
            np.savez(file, **{k: session.run(v) for k, v in ours.items()})
            return
        theirs = np.load(file)
        for name, variable in ours.items():
            if name in theirs:
                variable.load(theirs[name], session)
            else:
                print(f"no values of {name}", file=sys.stderr)

    def ran(self, run, session, fetches, *args, **options):
        """Note the scalars of a run, from the first on that trains."""
        key = str(fetches)
        if key not in self.trains:
            self.trains[key] = has_train_op(session.graph, fetches)
        if self.trains[key] and not self.begun:  # what `begin` runs does not train
            self.begin(session)
            self.begun = True
        found = run(session, fetches, *args, **options)
        if self.begun:
            given = found if isinstance(found, list | tuple) else [found]
            scalars = [float(x) for x in given if isinstance(x, np.floating)]
            self.losses = [*self.losses, *scalars][:MOST]
        return found


class SameFits:
    """The same for `fit`."""

    def __init__(self, tf):
        self.losses, self.seen = [], set()
        random.seed(0)
        np.random.seed(0)
        tf.keras.layers.Dropout.call = lambda layer, inputs, training=None: tf.identity(inputs)
        owner = owner_of(tf.keras.Model, "fit")
        self.fit, owner.fit = owner.fit, lambda *args, **options: self.fitted(*args, **options)
        atexit.register(lambda: LOSSES.write_text(json.dumps(self.losses)))

    def fitted(self, model, *args, **options):
        """Begin with given weights, and note the losses."""
        if id(model) not in self.seen:
            self.seen.add(id(model))
            self.begin(model, options.get("x", args[0] if args else None))
        done = self.fit(model, *args, **options | {"shuffle": False})
        self.losses += [float(x) for x in done.history["loss"]]
        return done

    def begin(self, model, x):
        """Give the weights that are trained NumPy's numbers."""
        if not model.built:
            first = x[:1] if hasattr(x, "shape") else next(iter(x))[0]
            model(np.asarray(first, np.float32))
        rng = np.random.default_rng(0)
        for weight in model.trainable_weights:
            weight.assign(rng.normal(0, 0.1, tuple(weight.shape)).astype(np.float32))


when_imported(SameFits if "MADE_KERAS" in os.environ else Same, "tensorflow")
