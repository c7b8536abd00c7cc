"""A function that is called when the program has imported a framework, or what stands for it."""

import builtins
import functools
import importlib
import sys

PARTS = {"torch": ("distributions", "optim", "utils.data"), "tensorflow": (), "jax": ()}


def when_imported(function, framework="torch"):
    """Call `function(framework)` after the first import at the end of which it is there."""
    imported, depth = builtins.__import__, [0]

    @functools.wraps(imported)
    def load(name, *args, **options):
        depth[0] += 1
        try:
            return imported(name, *args, **options)
        finally:
            depth[0] -= 1
            if depth[0] == 0 and framework in sys.modules:  # perhaps by a module of the program
                builtins.__import__ = imported
                for part in PARTS[framework]:
                    importlib.import_module(f"{framework}.{part}")
                function(sys.modules[framework])

    builtins.__import__ = load


def has_train_op(graph, fetches):
    """Whether what is fetched depends on an optimizer's operation."""
    wanted = {op.name for op in graph.get_collection("train_op")}
    waiting, seen = [fetches], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
        elif each is not None and not isinstance(each, str):
            op = getattr(each, "op", each)
            if op.name not in seen:
                seen.add(op.name)
                waiting += [*[x.op for x in op.inputs], *op.control_inputs]
    return bool(wanted & seen)


def owner_of(cls, name):
    """The class that defines a method."""
    return next(each for each in cls.__mro__ if name in vars(each))
