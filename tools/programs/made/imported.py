"""A function that is called when the program has imported a framework, or what stands for it."""

import builtins
import functools
import importlib
import sys

PARTS = {"torch": ("distributions", "optim", "utils.data"), "tensorflow": (), "jax": ()}


def when_imported(function, framework="torch"):
    """Call `function(framework)` after the first whole import of it."""
    imported, depth = builtins.__import__, [0]

    @functools.wraps(imported)
    def load(name, *args, **options):
        depth[0] += 1
        try:
            return imported(name, *args, **options)
        finally:
            depth[0] -= 1
            if depth[0] == 0 and name.partition(".")[0] == framework and framework in sys.modules:
                builtins.__import__ = imported
                for part in PARTS[framework]:
                    importlib.import_module(f"{framework}.{part}")
                function(sys.modules[framework])

    builtins.__import__ = load
