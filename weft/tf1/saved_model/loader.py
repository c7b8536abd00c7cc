"""`tf.saved_model.loader`: a saved graph in a session, with its variables."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weft.errors import DataError
from weft.formats import wire
from weft.tf1.errors import NotFoundError
from weft.tf1.framework.graph import fail
from weft.tf1.saved_model.constants import constants
from weft.tf1.saved_model.signature import SignatureDef
from weft.tf1.train.meta_graph import placed
from weft.tf1.train.meta_graph_def import MetaGraphDef

__all__ = ["contains_saved_model", "maybe_saved_model_directory"]


def contains_saved_model(export_dir: Any) -> bool:
    """Whether a folder has a saved model.

    Args:
        export_dir: the folder.
    """
    return (Path(os.fspath(export_dir)) / constants.SAVED_MODEL_FILENAME_PB).is_file()


maybe_saved_model_directory = contains_saved_model


def load(
    sess: Any, tags: Iterable[str], export_dir: Any, import_scope: str | None = None,
    **saver_kwargs: Any,
) -> MetaGraphDef:  # fmt: skip
    """Add a saved graph to that of a session, and restore its variables; returns its record.

    Args:
        sess: the session.
        tags: exactly those of the graph.
        export_dir: the folder.
        import_scope: what names begin with.
        saver_kwargs: no effect.

    Raises:
        NotFoundError: there is no saved model, or none with these tags.
        DataError: Weft did not write it.
    """
    del saver_kwargs
    folder = Path(os.fspath(export_dir))
    if not contains_saved_model(folder):
        text = f"expected {constants.SAVED_MODEL_FILENAME_PB} in {folder}, there is none"
        raise NotFoundError(None, None, f"saved_model.load: {text}")
    raw = folder.joinpath(constants.SAVED_MODEL_FILENAME_PB).read_bytes()
    graphs = [f.value for f in wire.fields(raw, what="SavedModel") if f.number == 2]
    found = [MetaGraphDef.FromString(graph) for graph in graphs]
    wanted = {tags} if isinstance(tags, str) else set(tags)
    chosen = next((graph for graph in found if set(graph.tags) == wanted), None)
    if chosen is None:
        text = f"expected a graph with the tags {sorted(wanted)} in {folder}, there are graphs with"
        raise fail(DataError, f"saved_model.load: {text} {[graph.tags for graph in found]}")
    told: dict[str, Any] = chosen.signature_def
    chosen.signature_def = {name: SignatureDef.of(one) for name, one in told.items()}
    here, saver = placed(chosen, sess.graph, import_scope)
    if saver is not None:
        path = folder.joinpath(constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME)
        saver.restore(sess, str(path))
    if chosen.main_op:
        sess.run(here.operation(chosen.main_op))
    return chosen
