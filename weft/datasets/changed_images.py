"""`ImageDataGenerator`: batches of images, changed at random, from arrays or folders.

Random numbers are drawn from NumPy's global state in Keras's order, so that a seed gives Keras's
images.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.datasets.warp import MODES, Array, warped
from weft.errors import ArgumentError, DataError

__all__ = ["ImageDataGenerator", "array_to_img", "img_to_array", "load_img"]

_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff")
_MODES: Final = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}
_LABELS: Final = ("categorical", "binary", "sparse", "input", None)


def load_img(
    path: Any, grayscale: bool = False, color_mode: str = "rgb", target_size: Any = None,
    interpolation: str = "nearest",
) -> Any:  # fmt: skip
    """An image file, as Pillow's.

    Args:
        path: the file.
        grayscale: the same as the color mode "grayscale".
        color_mode: "grayscale", "rgb" or "rgba".
        target_size: height and width; as in the file by default.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming".

    Raises:
        ArgumentError: an unknown color mode.
    """
    kind = "grayscale" if grayscale else color_mode
    if kind not in _MODES:
        raise ArgumentError.here(f"load_img: expected one of {sorted(_MODES)}, got {kind!r}")
    pillow: Any = importlib.import_module("PIL.Image")
    with pillow.open(path) as file:
        image = file.convert(_MODES[kind])
    if target_size is not None and image.size != (target_size[1], target_size[0]):
        way = getattr(pillow.Resampling, interpolation.upper())
        image = image.resize((target_size[1], target_size[0]), way)
    return image


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = "float32") -> Array:
    """An image as an array [height, width, channels].

    Args:
        img: of Pillow.
        data_format: "channels_first" puts the channels first.
        dtype: of the array.
    """
    x = np.asarray(img, dtype)
    x = x[:, :, None] if x.ndim == 2 else x
    return x.transpose(2, 0, 1) if data_format == "channels_first" else x


def array_to_img(
    x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = "float32"
) -> Any:
    """An array [height, width, channels] as an image of Pillow.

    Args:
        x: the array.
        data_format: "channels_first" if the channels are first.
        scale: whether its values are spread over 0 to 255.
        dtype: in which that is computed.
    """
    x = np.asarray(x, dtype)
    x = x.transpose(1, 2, 0) if data_format == "channels_first" else x
    if scale:
        x = x - x.min()
        x = x / (x.max() or 1.0) * 255.0
    pillow: Any = importlib.import_module("PIL.Image")
    return pillow.fromarray(
        x.astype("uint8").squeeze(-1) if x.shape[-1] == 1 else x.astype("uint8")
    )


@dataclass(frozen=True)
class ImageDataGenerator:
    """Batches of images, changed at random; images have the channels last.

    Args:
        featurewise_center, featurewise_std_normalization: subtract the mean, and divide by the
            deviation, that `fit` finds for each channel.
        samplewise_center, samplewise_std_normalization: the same with each image's own.
        rotation_range: at most so many degrees.
        width_shift_range, height_shift_range: a fraction of the size, or from 1 on pixels; a whole
            number for less than so many pixels, or a list of shifts.
        brightness_range: the least and the greatest factor.
        shear_range: at most so many degrees.
        zoom_range: 1 minus and plus this, or the least and the greatest.
        channel_shift_range: at most so much is added to a channel.
        fill_mode: what is outside: "nearest", "constant", "reflect" or "wrap".
        cval: the value outside, for "constant".
        horizontal_flip, vertical_flip: whether half of the images are flipped.
        rescale: a factor, after all other changes.
        preprocessing_function: of an image, before that.
        data_format: "channels_last".
        validation_split: the fraction of the data that the subset "validation" has.

    Raises:
        ArgumentError: an unknown mode, or a range that is none.
    """

    featurewise_center: bool = False
    samplewise_center: bool = False
    featurewise_std_normalization: bool = False
    samplewise_std_normalization: bool = False
    zca_whitening: bool = False
    zca_epsilon: float = 1e-6
    rotation_range: float = 0
    width_shift_range: Any = 0.0
    height_shift_range: Any = 0.0
    brightness_range: Sequence[float] | None = None
    shear_range: float = 0.0
    zoom_range: Any = 0.0
    channel_shift_range: float = 0.0
    fill_mode: str = "nearest"
    cval: float = 0.0
    horizontal_flip: bool = False
    vertical_flip: bool = False
    rescale: float | None = None
    preprocessing_function: Callable[[Array], Any] | None = None
    data_format: str | None = None
    validation_split: float = 0.0
    dtype: Any = None

    def __post_init__(self) -> None:
        refused = {
            "zca_whitening": self.zca_whitening,
            "data_format": self.data_format == "channels_first",
            "fill_mode": self.fill_mode not in MODES,
            "validation_split": not 0 <= self.validation_split < 1,
        }
        for name, bad in refused.items():
            if bad:
                given = getattr(self, name)
                raise ArgumentError.here(f"ImageDataGenerator: {name}={given!r} is not possible")

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Find the mean and the deviation of each channel.

        Args:
            x: images [n, height, width, channels].
            augment: whether changed images count.
            rounds: how often each is changed.
            seed: of the changes.
        """
        if seed is not None:
            np.random.seed(seed)
        images = np.asarray(x, np.float32)
        if augment:
            images = np.stack([self.random_transform(i) for _ in range(rounds) for i in images])
        vars(self)["mean"] = mean = images.mean((0, 1, 2))
        vars(self)["std"] = (images - mean).std((0, 1, 2))

    def get_random_transform(self, img_shape: Sequence[int], seed: int | None = None) -> Any:
        """A change, drawn at random, as a dictionary.

        Args:
            img_shape: height, width, channels.
            seed: NumPy's.
        """
        if seed is not None:
            np.random.seed(seed)
        draw: Any = np.random.uniform
        zoom: Any = self.zoom_range
        low, high = zoom if isinstance(zoom, list | tuple) else (1 - zoom, 1 + zoom)
        theta = draw(-self.rotation_range, self.rotation_range) if self.rotation_range else 0.0
        tx, ty = (
            _shift(r, n)
            for r, n in zip(
                (self.height_shift_range, self.width_shift_range), img_shape, strict=False
            )
        )
        shear = draw(-self.shear_range, self.shear_range) if self.shear_range else 0.0
        zx, zy = (1.0, 1.0) if low == high == 1 else draw(low, high, 2)
        across = bool((np.random.random() < 0.5) * self.horizontal_flip)
        down = bool((np.random.random() < 0.5) * self.vertical_flip)
        more = self.channel_shift_range
        channel = draw(-more, more) if more else None
        light = None if self.brightness_range is None else draw(*self.brightness_range)
        return {
            "theta": theta, "tx": tx, "ty": ty, "shear": shear, "zx": zx, "zy": zy,
            "flip_horizontal": across, "flip_vertical": down,
            "channel_shift_intensity": channel, "brightness": light,
        }  # fmt: skip

    def apply_transform(self, x: Any, transform_parameters: Mapping[str, Any]) -> Array:
        """An image changed as `get_random_transform` says.

        Args:
            x: [height, width, channels].
            transform_parameters: the change; what it leaves out is not changed.
        """
        x, told = np.asarray(x, np.float32), transform_parameters
        matrix = _matrix(told, x.shape)
        if not np.array_equal(matrix, np.eye(3)):
            x = warped(x, matrix, self.fill_mode, self.cval)
        if told.get("channel_shift_intensity") is not None:
            x = np.clip(x + told["channel_shift_intensity"], x.min(), x.max())
        x = x[:, ::-1] if told.get("flip_horizontal") else x
        x = x[::-1] if told.get("flip_vertical") else x
        if told.get("brightness") is not None:
            x = _brightened(x, told["brightness"])
        return x

    def random_transform(self, x: Any, seed: int | None = None) -> Array:
        """An image changed at random."""
        return self.apply_transform(x, self.get_random_transform(np.shape(x), seed))

    def standardize(self, x: Any) -> Array:
        """An image, scaled and centered as the generator says."""
        if self.preprocessing_function is not None:
            x = self.preprocessing_function(x)
        x = np.asarray(x, np.float32)
        x = x if self.rescale is None else x * np.float32(self.rescale)
        x = x - x.mean() if self.samplewise_center else x
        x = x / (x.std() + 1e-6) if self.samplewise_std_normalization else x
        for name, wanted in (("mean", self.featurewise_center),
                             ("std", self.featurewise_std_normalization)):  # fmt: skip
            if wanted and name not in vars(self):
                raise ArgumentError.here("ImageDataGenerator: expected fit(x) before its means")
        x = x - vars(self)["mean"] if self.featurewise_center else x
        return x / (vars(self)["std"] + 1e-6) if self.featurewise_std_normalization else x

    def flow(
        self, x: Any, y: Any = None, batch_size: int = 32, shuffle: bool = True,
        sample_weight: Any = None, seed: int | None = None, save_to_dir: Any = None,
        save_prefix: str = "", save_format: str = "png", subset: str | None = None,
    ) -> ImageBatches:  # fmt: skip
        """Endless batches of arrays.

        Args:
            x: images [n, height, width, channels].
            y: their labels, if any.
            batch_size, shuffle: how they are put together.
            sample_weight: their weights, if any.
            seed: of order and changes.
            save_to_dir, save_prefix, save_format: a folder to which changed images are written.
            subset: "training" or "validation", by `validation_split`.
        """
        chosen = self.part(len(x), subset)
        rest = [np.asarray(r)[chosen] for r in (y, sample_weight) if r is not None]
        images = np.asarray(x)[chosen]
        if images.ndim != 4:
            text = f"expected images [n, height, width, channels], got shape {images.shape}"
            raise ArgumentError.here(f"flow: {text}")
        made = ImageBatches(self, lambda i: images[i], rest, len(images), batch_size, shuffle, seed)
        made.saved = save_to_dir, save_prefix, save_format
        return made

    def flow_from_directory(
        self, directory: Any, target_size: Sequence[int] = (256, 256), color_mode: str = "rgb",
        classes: Sequence[str] | None = None, class_mode: str | None = "categorical",
        batch_size: int = 32, shuffle: bool = True, seed: int | None = None,
        save_to_dir: Any = None, save_prefix: str = "", save_format: str = "png",
        follow_links: bool = False, subset: str | None = None, interpolation: str = "nearest",
    ) -> ImageBatches:  # fmt: skip
        """Endless batches of the images in a folder, which has a folder for each class.

        Args:
            directory: the folder.
            target_size, color_mode, interpolation: as in `load_img`.
            classes: names of the classes' folders, in order; all, sorted, by default.
            class_mode: the labels: "categorical", "binary", "sparse", "input" or None.
            batch_size, shuffle, seed, subset: as in `flow`.
            save_to_dir, save_prefix, save_format: as in `flow`.
            follow_links: whether links to folders are followed.

        Raises:
            ArgumentError: an unknown class mode.
            DataError: there are no images.
        """
        if class_mode not in _LABELS:
            text = f"expected class_mode of {_LABELS}, got {class_mode!r}"
            raise ArgumentError.here(f"flow_from_directory: {text}")
        root = Path(directory)
        names = sorted(p.name for p in root.iterdir() if p.is_dir()) if classes is None else classes
        files: list[Path] = []
        labels: list[int] = []
        for number, name in enumerate(names):
            found = _images(root / name, follow_links)
            kept = [found[i] for i in self.part(len(found), subset)]
            files += kept
            labels += [number] * len(kept)
        if not files:
            raise DataError.here(f"flow_from_directory: expected images below {root}, found none")
        print(f"Found {len(files)} images belonging to {len(names)} classes.")

        def load(i: int) -> Array:
            return img_to_array(load_img(files[i], False, color_mode, target_size, interpolation))

        rest = [] if class_mode in (None, "input") else [_labels(labels, class_mode, len(names))]
        made = ImageBatches(self, load, rest, len(files), batch_size, shuffle, seed)
        made.saved = save_to_dir, save_prefix, save_format
        made.same = class_mode == "input"
        made.classes = np.array(labels)
        made.class_indices = {name: i for i, name in enumerate(names)}
        made.filenames = [os.path.relpath(f, root) for f in files]
        return made

    def part(self, count: int, subset: str | None) -> list[int]:
        """The indices of a subset: validation has the first ones.

        Raises:
            ArgumentError: an unknown subset.
        """
        if subset not in (None, "training", "validation"):
            raise ArgumentError.here(f"subset: expected training or validation, got {subset!r}")
        held = int(self.validation_split * count)
        every = list(range(count))
        return every if subset is None else every[:held] if subset == "validation" else every[held:]


class ImageBatches:
    """Batches by index, and an endless iterator over them.

    Args:
        generator: changes the images.
        load: image i.
        rest: labels and weights.
        count: of images.
        batch_size, shuffle, seed: how they are put together.
    """

    def __init__(
        self, generator: ImageDataGenerator, load: Callable[[int], Array], rest: Sequence[Array],
        count: int, batch_size: int, shuffle: bool, seed: int | None,
    ) -> None:  # fmt: skip
        self._generator, self._load, self._rest = generator, load, rest
        self.n = self.samples = count
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.same = False
        self.saved: tuple[Any, str, str] = (None, "", "png")
        self.classes: Any = None
        self.class_indices: dict[str, int] = {}
        self.filenames: list[str] = []
        self._seen = self._at = 0
        self._order: Array | None = None

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return len(self.class_indices)

    def __len__(self) -> int:
        return math.ceil(self.n / self.batch_size)

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"expected a batch below {len(self)}, got {index}")
        if self.seed is not None:
            np.random.seed(self.seed + self._seen)
        self._seen += 1
        if self._order is None:
            self._order = np.random.permutation(self.n) if self.shuffle else np.arange(self.n)
        return self._batch(self._order[self.batch_size * index : self.batch_size * (index + 1)])

    def _batch(self, chosen: Array) -> Any:
        change = self._generator
        x = np.stack([change.standardize(change.random_transform(self._load(i))) for i in chosen])
        folder, prefix, suffix = self.saved
        if folder is not None:
            for i, image in zip(chosen, x, strict=True):
                name = f"{prefix}_{i}_{np.random.randint(10**7)}.{suffix}"
                array_to_img(image).save(Path(folder) / name)
        parts = [x, x] if self.same else [x, *[r[chosen] for r in self._rest]]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def on_epoch_end(self) -> None:
        """Choose another order."""
        self._order = None

    def reset(self) -> None:
        """Begin with the first batch."""
        self._at, self._order = 0, None

    def __iter__(self) -> ImageBatches:
        return self

    def __next__(self) -> Any:
        if self._at == 0:
            self._order = None
        batch = self[self._at]
        self._at = (self._at + 1) % len(self)
        return batch

    next = __next__


def _shift(span: Any, size: int) -> float:
    """A shift in pixels: any up to a fraction or so many pixels, or one of those that are listed.

    A whole number stands for those below it.
    """
    if not np.any(span):
        return 0.0
    if isinstance(span, float):
        drawn = np.random.uniform(-span, span)
    else:
        drawn = np.random.choice(span) * np.random.choice([-1, 1])
    return float(drawn * size if np.max(span) < 1 else drawn)


def _matrix(told: Mapping[str, Any], shape: Sequence[int]) -> Array:
    """From rows and columns of the changed image to those of the given one."""
    theta, shear = (np.deg2rad(told.get(name, 0.0)) for name in ("theta", "shear"))
    turn = [[np.cos(theta), -np.sin(theta), 0], [np.sin(theta), np.cos(theta), 0], [0, 0, 1]]
    move = [[1, 0, told.get("tx", 0)], [0, 1, told.get("ty", 0)], [0, 0, 1]]
    slant = [[1, -np.sin(shear), 0], [0, np.cos(shear), 0], [0, 0, 1]]
    matrix = np.linalg.multi_dot(
        [np.array(m, float) for m in
         (turn, move, slant, np.diag([told.get("zx", 1), told.get("zy", 1), 1]))]
    )  # fmt: skip
    middle = np.eye(3)
    middle[:2, 2] = np.array(shape[:2]) / 2 - 0.5
    found = middle @ matrix @ np.linalg.inv(middle)
    return found[[1, 0, 2]][:, [1, 0, 2]]  # Keras takes the first axis for x


def _brightened(x: Array, factor: float) -> Array:
    """As Pillow's `ImageEnhance.Brightness`, by way of bytes."""
    enhance: Any = importlib.import_module("PIL.ImageEnhance")
    low, high = x.min(), x.max()
    image = array_to_img(x, scale=bool(low < 0 or high > 255))
    return img_to_array(enhance.Brightness(image).enhance(factor))


def _images(folder: Path, follow_links: bool) -> list[Path]:
    found = [Path(at) / name for at, _, names in os.walk(folder, followlinks=follow_links)
             for name in names]  # fmt: skip
    return sorted(f for f in found if f.suffix.lower() in _SUFFIXES)


def _labels(labels: Sequence[int], mode: str, count: int) -> Array:
    if mode == "categorical":
        return np.eye(count, dtype=np.float32)[np.array(labels)]
    return np.array(labels, np.float32)
