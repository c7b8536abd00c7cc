"""Records the forms that programs have kernels written for, and at which sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from unittest import mock

from weft.eager.record.run import stitched_tier
from weft.library import first_runs, kernel_list
from weft.library.entry import Entry
from weft.library.form import form_of
from weft.library.form_text import NoTextError, as_text
from weft.library.generator import LibraryGenerator
from weft.library.making import same_group
from weft.library.variant import Code
from weft.library.workspace import Workspace
from weft.ops.declaration import Opaque, is_region, op_of

Forms = dict[str, list[tuple[int, ...]]]


@contextlib.contextmanager
def recorded() -> Iterator[Forms]:
    """Whatever runs inside is computed by library kernels.

    Yields:
        The forms as text, each with the sizes that new kernels were written for. It is filled.
    """
    found: Forms = {}
    write = Entry._written

    def written(self, group, places, sizes):
        bound = write(self, group, places, sizes)
        key = self._key  # the group's form, or one that serves it, too
        with contextlib.suppress(NoTextError):
            text = as_text(key)
            if bound is not None and form_of(same_group(text, sizes)).key == key:
                found.setdefault(text, []).append(sizes)
        return bound

    with (
        mock.patch.object(Entry, "_written", written),
        mock.patch.object(stitched_tier, "STITCHED_RUNS", 1 << 30),
        mock.patch.object(first_runs, "pack_of", lambda target: True),
    ):
        yield found


@contextlib.contextmanager
def fused() -> Iterator[None]:
    """Programs of library kernels have kernels for several nodes, but for products."""

    def has(self, group):
        node = group.nodes[0]
        products = isinstance(op_of(node).lower, Opaque)
        return not is_region(node) and (len(group.all_nodes) == 1 or not products)

    with mock.patch.object(LibraryGenerator, "has", has):
        yield


@contextlib.contextmanager
def nothing_runs() -> Iterator[None]:
    """Kernels are written, but neither compiled nor run: values are whatever is in memory."""
    with (
        mock.patch.object(Entry, "_begin", lambda self, variant: None),
        mock.patch.object(kernel_list, "link", _nowhere),
        mock.patch.object(Workspace, "run", lambda self, first, last: None),
    ):
        yield


def _nowhere(codes: Sequence[Code]) -> None:
    """Links kernels to what must not be run."""
    for code in codes:
        code.link(1)
