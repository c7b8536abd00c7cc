"""Images, figures, videos and audio of a run."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.formats.event import message, picture, sound
from weft.utils.tensorboard.event_log import EventLog
from weft.utils.tensorboard.value import array_of, image_of


class MediaLog(EventLog):
    """The events with media; see `SummaryWriter`."""

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Add an image.

        Args:
            tag: its name.
            img_tensor: bytes, or floats between 0 and 1; 1 to 4 channels (gray, gray and alpha,
                RGB,
                RGB, RGBA).
            global_step: the step.
            walltime: the time.
            dataformats: a letter for each dimension: `CHW`, `HWC`, `HW`, `NCHW`, `NHWC`.

        Raises:
            ShapeError: the image has other dimensions.
        """
        array = picture.arranged(image_of(img_tensor), dataformats)
        self._add(
            lambda: message.image(tag, picture.png(array), *array.shape), global_step, walltime
        )

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Add images as a grid, eight per row.

        Raises:
            ShapeError: the images have other dimensions.
        """
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a Matplotlib figure, or a list of them side by side.

        Args:
            tag: its name.
            figure: an object with `savefig`.
            global_step: the step.
            close: whether to close the figure afterwards.
            walltime: the time.
        """
        figures = list(figure) if isinstance(figure, list | tuple) else [figure]
        for number, each in enumerate(figures):
            file = io.BytesIO()
            each.savefig(file, format="png", dpi=each.dpi)
            content = file.getvalue()
            name = tag if len(figures) == 1 else f"{tag}/{number}"
            value = message.image(name, content, *picture.size_of(content))
            self._add(lambda value=value: value, global_step, walltime)
        pyplot = sys.modules.get("matplotlib.pyplot")
        if close and pyplot is not None:
            for each in figures:
                pyplot.close(each)

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Any = None, fps: float = 4,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a video, as an animated PNG.

        Args:
            tag: its name.
            vid_tensor: bytes, or floats between 0 and 1: `[number, time, channels, height, width]`;
                several are shown side by side.
            global_step: the step.
            fps: frames per second.
            walltime: the time.

        Raises:
            ShapeError: the video has other dimensions.
        """
        array = image_of(vid_tensor)
        if array.ndim != 5 or not array.size or array.shape[2] not in picture.COLOR_TYPES:
            raise ArgumentError(
                f"add_video: expected [number, time, channels, height, width], got {array.shape}"
            )
        frames = np.stack([picture.arranged(array[:, t], "NCHW") for t in range(array.shape[1])])

        def value() -> bytes:
            return message.image(tag, picture.animated(frames, fps), *frames.shape[1:])

        self._add(value, global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: Any = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add audio: samples between -1 and 1.

        Raises:
            ShapeError: more than one dimension is larger than 1.
        """
        samples = array_of(snd_tensor).squeeze()
        content, channels, frames = sound.wav(samples, sample_rate)
        value = message.audio(tag, content, sample_rate, channels, frames)
        self._add(lambda: value, global_step, walltime)
