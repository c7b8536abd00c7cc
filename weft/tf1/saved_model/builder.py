"""`tf.saved_model.Builder` and `simple_save`: graphs with the values of their variables.

SavedModel    saved_model_schema_version = 1, meta_graphs = 2
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.documentation import arguments_of
from weft.errors import ArgumentError, StateError
from weft.formats import wire
from weft.formats.atomic_file import write_file
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.framework.option import only
from weft.tf1.framework.tensor import Operation
from weft.tf1.saved_model.constants import constants, signature_constants, tag_constants
from weft.tf1.saved_model.signature import SignatureDef, predict_signature_def
from weft.tf1.train.meta_graph_def import MetaGraphDef
from weft.tf1.train.saver import Saver, SaverDef
from weft.tf1.variable.variable_list import global_variables

__all__ = ["Builder", "simple_save"]


class Builder:
    """Writes a folder that `tf.saved_model.loader.load` reads.

    The file is no graph for TensorFlow's server.

    Args:
        export_dir: the folder, which is made.

    Raises:
        ArgumentError: it exists, and is not empty.
    """

    def __init__(self, export_dir: Any) -> None:
        self._folder = Path(os.fspath(export_dir))
        if self._folder.is_dir() and any(self._folder.iterdir()):
            text = f"expected no folder, or an empty one, got {self._folder}"
            raise fail(ArgumentError, f"SavedModelBuilder: {text}")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._graphs: list[MetaGraphDef] = []

    def add_meta_graph_and_variables(
        self, sess: Any, tags: Sequence[str],
        signature_def_map: Mapping[str, SignatureDef] | None = None, assets_collection: Any = None,
        legacy_init_op: Operation | None = None, clear_devices: bool = False,
        main_op: Operation | None = None, strip_default_attrs: bool = False,
        saver: Saver | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """Add the graph of a session, and write the values of its variables.

        Args:
            sess: the session.
            tags: what the graph is called.
            signature_def_map: signatures by name.
            assets_collection: not supported.
            legacy_init_op, main_op: an operation that runs when the model is loaded.
            saver: what saves the variables, by default all global ones.
            clear_devices: leave the devices away.
            strip_default_attrs: no effect.

        Raises:
            StateError: values were written already.
        """
        if self._graphs:
            raise fail(StateError, "SavedModelBuilder: variables and assets were saved already")
        with sess.graph.as_default():
            made = self._add(tags, signature_def_map, assets_collection, legacy_init_op or main_op,
                             clear_devices, saver, options)  # fmt: skip
        path = self._folder / constants.VARIABLES_DIRECTORY
        path.mkdir()
        if made is not None:
            made.save(sess, str(path / constants.VARIABLES_FILENAME), write_meta_graph=False,
                      write_state=False)  # fmt: skip
        del strip_default_attrs

    @arguments_of(add_meta_graph_and_variables)
    def add_meta_graph(
        self, tags: Sequence[str], signature_def_map: Mapping[str, SignatureDef] | None = None,
        assets_collection: Any = None, legacy_init_op: Operation | None = None,
        clear_devices: bool = False, main_op: Operation | None = None,
        strip_default_attrs: bool = False, saver: Saver | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """Add the default graph, for the values that were written.

        Args:
            saver: what restores the variables, by default all global ones.

        Raises:
            StateError: no values were written.
        """
        del strip_default_attrs
        if not self._graphs:
            raise fail(StateError, "SavedModelBuilder: graphs follow add_meta_graph_and_variables")
        first = legacy_init_op or main_op
        self._add(
            tags, signature_def_map, assets_collection, first, clear_devices, saver, options
        )  # fmt: skip

    def _add(
        self, tags: Sequence[str], signatures: Mapping[str, SignatureDef] | None, assets: Any,
        first: Operation | None, clear: bool, saver: Saver | None, options: Mapping[str, Any],
    ) -> Saver | None:  # fmt: skip
        assets = options.get("assets_list", assets) or None
        only("SavedModelBuilder", {"assets_collection": assets}, assets_collection=None)
        if saver is None and global_variables():
            saver = Saver(write_version=SaverDef.V2)
        made = MetaGraphDef.of(get_default_graph(), saver, None, clear)
        made.tags, made.signature_def = list(tags), dict(signatures or {})
        made.main_op = "" if first is None else first.name
        self._graphs.append(made)
        return saver

    def save(self, as_text: bool = False) -> bytes:
        """Write the graphs; returns the path of the file.

        Args:
            as_text: not supported.
        """
        only("SavedModelBuilder", {"as_text": as_text}, as_text=False)
        path = self._folder / constants.SAVED_MODEL_FILENAME_PB
        head = wire.integer(1, constants.SAVED_MODEL_SCHEMA_VERSION)
        graphs = [wire.delimited(2, graph.SerializeToString()) for graph in self._graphs]
        write_file(path, [head, *graphs])
        return os.fsencode(path)


SavedModelBuilder = Builder


def simple_save(
    session: Any, export_dir: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any],
    legacy_init_op: Operation | None = None,
) -> None:  # fmt: skip
    """Write the graph of a session for predictions.

    Args:
        session: has the values of the variables.
        export_dir: the folder, which is made.
        inputs: tensors that are fed, by name.
        outputs: tensors that are computed, by name.
        legacy_init_op: runs when the model is loaded.

    Example:
        >>> import tempfile
        >>> import weft.tf1 as tf
        >>> folder = tempfile.mkdtemp() + "/model"
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.placeholder(tf.float32, [None], name="x")
        ...     y = tf.multiply(x, tf.Variable(3.0), name="y")
        ...     session.run(tf.global_variables_initializer())
        ...     tf.saved_model.simple_save(session, folder, {"x": x}, {"y": y})
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     meta = tf.saved_model.loader.load(session, ["serve"], folder)
        ...     session.run(meta.signature_def["serving_default"].outputs["y"].name, {"x:0": [2]})
        array([6.], dtype=float32)
    """
    signature = predict_signature_def(inputs, outputs)
    key = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    made = Builder(export_dir)
    made.add_meta_graph_and_variables(
        session, [tag_constants.SERVING], {key: signature}, main_op=legacy_init_op
    )
    made.save()
