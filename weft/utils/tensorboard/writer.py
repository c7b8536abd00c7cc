"""`SummaryWriter`: logs a run for TensorBoard."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import DTypeError
from weft.formats.event import graph, hyperparameter, message, plugin, projector
from weft.formats.event.histogram import histogram, raw_histogram
from weft.utils.tensorboard.media_log import MediaLog
from weft.utils.tensorboard.model_graph import model_nodes
from weft.utils.tensorboard.profile_log import ProfileLog
from weft.utils.tensorboard.value import array_of, image_of, number_of


class SummaryWriter(MediaLog, ProfileLog):
    """Writes event files for TensorBoard, with the methods of PyTorch's `SummaryWriter`.

    Values are read when a method is called; a separate thread encodes and writes them. What was
    flushed is in the file, even if the process crashes.

    Args:
        log_dir: the folder; by default `runs/` with the date, the machine's name and `comment`.
        comment: the suffix of the default folder's name.
        purge_step: after a crash at a later step, TensorBoard drops events from this step on.
        max_queue: the number of queued events at which a method waits.
        flush_secs: the maximum time until an event is in the file.
        filename_suffix: the suffix of the files' names.

    Attributes:
        log_dir: the folder.

    Raises:
        ArgumentError: `max_queue` or `flush_secs` is less than 0.
        OSError: the folder cannot be written; later methods raise it if an event could not be.

    >>> import tempfile
    >>> with SummaryWriter(tempfile.mkdtemp()) as writer:
    ...     writer.add_scalar("loss", 0.5, global_step=1)
    """

    # -- numbers

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Add a number.

        Args:
            tag: its name; the part before `/` groups charts.
            scalar_value: a number, or a tensor with one element.
            global_step: the step.
            walltime: the time, in seconds since 1970; by default now.
            new_style: write it as TensorFlow 2 does.
            double_precision: write 64 bits; only in the new style.

        Raises:
            ArgumentError: there is not exactly one number.
        """
        value = number_of(tag, scalar_value)
        if new_style or double_precision:
            kept = value.astype(np.float64 if double_precision else np.float32)
            self._add(lambda: plugin.scalar_tensor(tag, kept), global_step, walltime)
        else:
            self._add(lambda: message.scalar(tag, float(value)), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add numbers to show in one chart: each becomes a separate run.

        Raises:
            ArgumentError: one of them is not one number.
        """
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            self._other(folder).add_scalar(main_tag, value, global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Add a whole tensor, for programs that read the file; TensorBoard does not show it.

        Raises:
            DTypeError: the tensor is not of numbers.
        """
        kept = array_of(tensor)
        if kept.dtype.name not in message.DATA_TYPES:
            raise DTypeError(f"add_tensor: {tag!r}: expected numbers, got {kept.dtype}")
        self._add(lambda: plugin.whole_tensor(tag, kept), global_step, walltime)

    # -- distributions

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Add a histogram of values.

        Args:
            tag: its name.
            values: a tensor.
            global_step: the step.
            bins: `"tensorflow"`, or what `numpy.histogram` takes.
            walltime: the time.
            max_bins: the maximum number of buckets.

        Raises:
            ArgumentError: there are no values, or some are NaN or infinite.
        """
        encoded = histogram(tag, array_of(values), bins, max_bins)
        self._add(lambda: encoded, global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: float, sum: float, sum_squares: float,
        bucket_limits: Sequence[float], bucket_counts: Sequence[float], global_step: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add precomputed histogram counts: the buckets' right edges, and their counts.

        Raises:
            ArgumentError: there is not a count for each edge.
        """
        encoded = raw_histogram(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )  # fmt: skip
        self._add(lambda: encoded, global_step, walltime)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Any = None,
        num_thresholds: int = 127, weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add the precision-recall curve at evenly spaced thresholds.

        Args:
            tag: its name.
            labels: true or false for each example.
            predictions: probabilities of true, between 0 and 1.
            global_step: the step.
            num_thresholds: 127 at most.
            weights: of the examples.
            walltime: the time.

        Raises:
            ShapeError: there is not a label for each prediction.
            ArgumentError: a prediction lies outside [0, 1].
        """
        weight = None if weights is None else array_of(weights)
        encoded = plugin.pr_curve(
            tag, array_of(labels), array_of(predictions), num_thresholds, weight
        )
        self._add(lambda: encoded, global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any,
        true_negative_counts: Any, false_negative_counts: Any, precision: Any, recall: Any,
        global_step: Any = None, num_thresholds: int = 127, weights: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add precomputed precision and recall, at each threshold."""
        given = (
            true_positive_counts, false_positive_counts, true_negative_counts,
            false_negative_counts, precision, recall,
        )  # fmt: skip
        encoded = plugin.raw_pr_curve(tag, *map(array_of, given))
        self._add(lambda: encoded, global_step, walltime)

    # -- texts and shapes

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add text, written in Markdown."""
        self._add(lambda: plugin.text(tag, text_string), global_step, walltime)

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None,
        config_dict: Mapping[str, Any] | None = None, global_step: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a point cloud, or a triangle mesh.

        Args:
            tag: its name.
            vertices: `[batch, points, 3]`.
            colors: bytes, of the same shape.
            faces: indices of points, `[batch, triangles, 3]`.
            config_dict: camera, lights and materials, by the names of THREE.js.
            global_step: the step.
            walltime: the time.

        Raises:
            ShapeError: other dimensions than these.
        """
        points, paint, triangles = [
            None if a is None else array_of(a) for a in (vertices, colors, faces)
        ]
        values = plugin.mesh(tag, points, paint, triangles, config_dict)
        self._add(lambda: values, global_step, walltime)

    # -- the model and the run

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:  # fmt: skip
        """Add the graph of a model, with a scope for each module.

        Args:
            model: a module, or any function of tensors.
            input_to_model: a tensor, or a tuple of arguments; nothing is computed.
            verbose: print the nodes.
            use_strict_trace: accepted; tracing is the same either way.

        Raises:
            TracerError: the model reads the value of a tensor.
        """
        args = input_to_model if isinstance(input_to_model, tuple) else (input_to_model,)
        nodes = model_nodes(model, () if input_to_model is None else args)
        if verbose:
            print("\n".join([f"{n.name} = {n.op}({', '.join(n.inputs)})" for n in nodes]))
        content = graph.graph_def(nodes)
        self._add_fields(lambda: message.graph_field(content), None, None)

    def add_embedding(
        self, mat: Any, metadata: Sequence[Any] | None = None, label_img: Any = None,
        global_step: Any = None, tag: str = "default", metadata_header: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """Add embeddings for the projector, in separate files.

        Args:
            mat: `[number, size]`.
            metadata: a string for each vector; with `metadata_header`, one for each column.
            label_img: an image for each vector, `[number, channels, height, width]`.
            global_step: the step.
            tag: a name.
            metadata_header: names of the columns of `metadata`.

        Raises:
            ShapeError: metadata or images do not match the vectors, or images are too large.
        """
        place = f"{0 if global_step is None else int(global_step):05}/{tag}"
        images = None if label_img is None else image_of(label_img).transpose(0, 2, 3, 1)
        name = f"{tag}:{place[:5]}"
        projector.write_embedding(
            Path(self.log_dir), place, name, array_of(mat), metadata, metadata_header, images
        )

    def add_hparams(
        self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None, global_step: Any = None,
    ) -> None:  # fmt: skip
        """Add the hyperparameters and results of a run, as a separate run.

        Args:
            hparam_dict: numbers, strings and booleans by name.
            metric_dict: numbers by the names of their scalars.
            hparam_domain_discrete: the possible values, by name.
            run_name: its folder within the writer's; by default the time.
            global_step: of the metrics.

        Raises:
            DTypeError: a hyperparameter is not a number, string or boolean.
        """
        values = {name: _plain(value) for name, value in hparam_dict.items()}
        parts = [
            hyperparameter.experiment(values, metric_dict, hparam_domain_discrete or {}),
            hyperparameter.session_start(values),
            hyperparameter.session_end(hyperparameter.SUCCESS),
        ]
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as writer:
            writer.add_values(parts)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def add_custom_scalars(self, layout: plugin.Layout) -> None:
        """Lay out scalars in charts: `{category: {title: ["Multiline", tags]}}`.

        Raises:
            ArgumentError: a chart is neither `"Multiline"` nor `"Margin"` with three tags.
        """
        value = plugin.layout(layout)
        self._add(lambda: value, None, None)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show several scalars in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show a scalar between two others, its lower and its upper bound.

        Raises:
            ArgumentError: there are not three tags.
        """
        self.add_custom_scalars({category: {title: ["Margin", tags]}})


def _plain(value: Any) -> Any:
    """A tensor's number."""
    return array_of(value)[()] if hasattr(value, "detach") else value
