"""`tf.contrib.tensorboard.plugins.projector`: which variables TensorBoard shows as points."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.formats.event.projector import CONFIG, embedding_text

__all__ = ["EmbeddingInfo", "ProjectorConfig", "SpriteMetadata", "visualize_embeddings"]


@dataclass
class SpriteMetadata:
    """An image of small images.

    Attributes:
        image_path: its file.
        single_image_dim: width and height of a small one.
    """

    image_path: str = ""
    single_image_dim: list[int] = field(default_factory=list[int])


@dataclass
class EmbeddingInfo:
    """A variable and what is shown beside its rows.

    Attributes:
        tensor_name: of the variable.
        metadata_path: a file with a line a row.
        tensor_path: a file with the rows, in place of a checkpoint.
        bookmarks_path: a file of views.
        sprite: an image of small images.
    """

    tensor_name: str = ""
    metadata_path: str = ""
    tensor_path: str = ""
    bookmarks_path: str = ""
    sprite: SpriteMetadata = field(default_factory=SpriteMetadata)


class _Embeddings(list[EmbeddingInfo]):
    def add(self, **options: Any) -> EmbeddingInfo:
        """A new last element."""
        self.append(EmbeddingInfo(**options))
        return self[-1]


@dataclass
class ProjectorConfig:
    """What is shown.

    Attributes:
        model_checkpoint_path: the checkpoint; the folder's newest by default.
        embeddings: `add()` makes one more.
    """

    model_checkpoint_path: str = ""
    embeddings: _Embeddings = field(default_factory=_Embeddings)


def visualize_embeddings(summary_writer: Any, config: ProjectorConfig) -> None:
    """Tell TensorBoard what to show, by a file in the writer's folder.

    Args:
        summary_writer: a `tf.summary.FileWriter`, or its folder.
        config: what is shown.
    """
    folder = summary_writer if isinstance(summary_writer, str) else summary_writer.get_logdir()
    text = ""
    if config.model_checkpoint_path:
        text = f'model_checkpoint_path: "{config.model_checkpoint_path}"\n'
    for each in config.embeddings:
        paths = {k: v for k, v in vars(each).items() if k != "sprite" and v}
        sprite = each.sprite
        text += embedding_text(paths, sprite.image_path, sprite.single_image_dim)
    Path(folder, CONFIG).write_text(text)
