"""`tf.train.export_meta_graph` and `import_meta_graph`: graphs in files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.tf1.errors import NotFoundError
from weft.tf1.framework.graph import Graph, get_default_graph
from weft.tf1.framework.importer import Placed
from weft.tf1.framework.option import ANY, only
from weft.tf1.train.meta_graph_def import MetaGraphDef, exported
from weft.tf1.train.saver import Saver
from weft.tf1.variable.variable_def import found_in

__all__ = ["export_meta_graph", "import_meta_graph"]


def placed(
    found: MetaGraphDef, graph: Graph, scope: str | None, clear_devices: bool = False,
    input_map: Mapping[str, Any] | None = None,
) -> tuple[Placed, Saver | None]:  # fmt: skip
    """Adds all to a graph; returns what was added, and the saver.

    Args:
        found: what a file has.
        graph: the graph.
        scope: what names begin with.
        clear_devices: leave the devices away.
        input_map: by the names of tensors, what to use instead.
    """
    prefix = graph.unique_name(scope) + "/" if scope else ""
    clear = clear_devices or found.clear_devices
    here = Placed(graph, found.graph_def, prefix, dict(input_map or {}), clear)
    variables = {
        told["op"]: found_in(graph, here, told, lambda name: here.value(name, found.graph_def))
        for told in found.variables
    }
    savers: dict[str, Saver] = {}

    def saver_of(told: dict[str, Any]) -> Saver:
        text = json.dumps(told, sort_keys=True)
        return savers.setdefault(text, savers.get(text) or Saver.of(told, variables))

    made: dict[str, Any] = {
        "variable": variables.__getitem__, "operation": here.operation, "tensor": here.tensor,
        "saver": saver_of, "plain": lambda told: told,  # pyright: ignore[reportUnknownLambdaType]
    }  # fmt: skip
    for key, items in found.collections.items():
        for kind, told in items:
            graph.add_to_collection(key, made[kind](told))
    if found.saver is not None:
        return here, saver_of(found.saver)
    with graph.as_default():
        return here, Saver(list(variables.values())) if variables else None


def export_meta_graph(
    filename: Any = None, meta_info_def: Any = None, graph_def: Any = None, saver_def: Any = None,
    collection_list: Sequence[str] | None = None, as_text: bool = False, graph: Graph | None = None,
    export_scope: str | None = None, **kwargs: Any,
) -> MetaGraphDef:  # fmt: skip
    """The record of a graph, its variables and collections, which `import_meta_graph` reads.

    Operations that call Python are in it, but raise where they run: `tf.py_func`, iterators,
    summaries. Queue runners are left out of collections.

    Args:
        filename: the file to write, if any.
        saver_def: the saver that `import_meta_graph` returns.
        collection_list: names of collections, by default all.
        graph: by default the default graph.
        meta_info_def, graph_def, as_text, export_scope: not supported.
        kwargs: `clear_devices` leaves the devices away; what else there is changes nothing here.
    """
    given = {**kwargs, "as_text": as_text, "export_scope": export_scope}
    given |= {"meta_info_def": meta_info_def, "graph_def": graph_def}
    return exported(graph or get_default_graph(), saver_def, collection_list, filename, given)


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None,
    **kwargs: Any,
) -> Saver | None:  # fmt: skip
    """Add a graph with its variables and collections to the default graph.

    Args:
        meta_graph_or_file: of `export_meta_graph`, or a file that it or a `Saver` wrote.
        clear_devices: leave the devices away.
        import_scope: what names begin with.
        kwargs: `input_map`: by the names of tensors, what to use instead.

    Returns:
        The saver of the file; by default one of its variables, `None` if there are none.

    Raises:
        NotFoundError: there is no such file.
        DataError: Weft did not write it.
    """
    found = meta_graph_or_file
    if not isinstance(found, MetaGraphDef):
        path = Path(os.fspath(found))
        if not path.is_file():
            raise NotFoundError(None, None, f"import_meta_graph: there is no file {path}")
        found = MetaGraphDef.FromString(path.read_bytes())
    graph = get_default_graph()
    only("import_meta_graph", kwargs, input_map=ANY)
    return placed(found, graph, import_scope, clear_devices, kwargs.get("input_map"))[1]
