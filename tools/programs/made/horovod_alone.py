"""`horovod.torch` of one process, for PyTorch's side of a comparison where Horovod cannot be built.

With nobody to exchange with, Horovod's optimizer is the one that it was given, and what is reduced
or broadcast stays as it is.
"""

import contextlib
import importlib.abc
import importlib.util
import sys


class Compression:
    """What gradients would be sent as."""

    none = fp16 = None


Average, Sum, Adasum = "Average", "Sum", "Adasum"


def unchanged(value, *args, **options):
    """What came: a tensor that one process reduces."""
    return value


def optimizer_alone(optimizer, *args, **options):
    """An optimizer without gradients to send, which has none to wait for."""
    optimizer.synchronize, optimizer.skip_synchronize = nothing, contextlib.nullcontext
    return optimizer


def nothing(*args, **options):
    """Begin, end or broadcast, alone."""


def number(value):
    """A function that tells a number of processes, or a rank."""
    return lambda: value


NAMES = {
    "Compression": Compression, "Average": Average, "Sum": Sum, "Adasum": Adasum,
    "init": nothing, "shutdown": nothing, "is_initialized": number(value=True),
    "size": number(1), "local_size": number(1), "rank": number(0), "local_rank": number(0),
    "nccl_built": number(0), "mpi_threads_supported": number(value=False),
    "allreduce": unchanged, "allgather": unchanged, "broadcast": unchanged,
    "DistributedOptimizer": optimizer_alone,
    "broadcast_parameters": nothing, "broadcast_optimizer_state": nothing,
}  # fmt: skip


class Alone(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import horovod.torch`."""

    def find_spec(self, name, path, target=None):
        """Both modules are made here."""
        if name not in ("horovod", "horovod.torch"):
            return None
        return importlib.util.spec_from_loader(name, self, is_package=name == "horovod")

    def exec_module(self, module):
        """Give the module its names."""
        if module.__name__ == "horovod.torch":
            vars(module).update(NAMES)


if not importlib.util.find_spec("horovod"):
    sys.meta_path.append(Alone())
