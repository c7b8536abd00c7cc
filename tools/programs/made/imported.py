# ruff: noqa: PLC0415 - PyTorch, or what stands for it, is imported by the program
"""A function that is called when the program has imported PyTorch, or what stands for it."""

import builtins
import functools


def when_imported(function):
    """Call `function(torch)` after the first whole import of it."""
    imported, depth = builtins.__import__, [0]

    @functools.wraps(imported)
    def load(name, *args, **options):
        depth[0] += 1
        try:
            return imported(name, *args, **options)
        finally:
            depth[0] -= 1
            if depth[0] == 0 and name.partition(".")[0] == "torch":
                builtins.__import__ = imported
                import torch
                import torch.distributions
                import torch.optim
                import torch.utils.data

                function(torch)

    builtins.__import__ = load
