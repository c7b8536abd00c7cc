# ruff: noqa: D102, PLC0415 - Python loads this before packages can be imported
"""Data that are made, in place of what programs download: loaded by Python where it starts.

Images are random, of the size and classes of the data set that they stand for, and few. Packages
that are services (Weights & Biases) are switched off by their own environment variables.
"""

import importlib
import importlib.abc
import importlib.util
import os
import sys
from pathlib import Path

READS_MNIST = "tensorflow.examples.tutorials.mnist.input_data"
ROWS = int(os.environ.get("MADE_ROWS", "128"))
SETS = {  # name: (image mode, size, classes)
    "MNIST": ("L", (28, 28), 10), "FashionMNIST": ("L", (28, 28), 10),
    "CIFAR10": ("RGB", (32, 32), 10), "CIFAR100": ("RGB", (32, 32), 100),
    "ImageFolder": ("RGB", (64, 64), 2), "VOCDetection": ("RGB", (64, 64), 20),
    "Omniglot": ("L", (105, 105), 20), "STL10": ("RGB", (96, 96), 10),
}  # fmt: skip


def made(name):
    """The class of a data set, with random images."""
    import numpy as np
    import torch
    from PIL import Image

    mode, (width, height), classes = SETS[name]
    depth = (3,) if mode == "RGB" else ()

    class Made(torch.utils.data.Dataset):
        def __init__(self, root="", *args, transform=None, target_transform=None, **options):
            functions = [value for value in args if callable(value)]
            transform = transform or next(iter(functions), None)
            random = np.random.default_rng(0)
            data = random.integers(0, 256, (ROWS, height, width, *depth), dtype=np.uint8)
            self.targets = [int(y) for y in random.integers(0, classes, ROWS)]
            self.data = torch.from_numpy(data) if mode == "L" else data
            self._images = data
            self.classes = [str(n) for n in range(classes)]
            self.class_to_idx = {c: n for n, c in enumerate(self.classes)}
            self.samples = self.imgs = [("", y) for y in self.targets]
            self.root, self.transform, self.target_transform = root, transform, target_transform
            if mode == "L":
                self.targets = torch.tensor(self.targets)
                self.train_labels = self.test_labels = self.targets
                self.train_data = self.test_data = self.data

        def __len__(self):
            return ROWS

        def __getitem__(self, i):
            image, target = Image.fromarray(self._images[i]), int(self.targets[i])
            if self.transform is not None:
                image = self.transform(image)
            if self.target_transform is not None:
                target = self.target_transform(target)
            return image, target

    Made.__name__ = Made.__qualname__ = name
    Made.__module__ = "torchvision.datasets"  # where other processes find it
    return Made


class Sets(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Replaces the classes when `torchvision.datasets` has been imported."""

    def find_spec(self, name, path, target=None):
        if name == "torchvision" and os.environ.get("MADE_OPERATORS"):
            import torch  # PyTorch's build for CPUs lacks what torchvision's build registers

            signature = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            for operator in ("nms", "qnms"):
                torch.library.define(f"torchvision::{operator}", signature)
            os.environ.pop("MADE_OPERATORS")
        if name != "torchvision.datasets":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        self.inner, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        self.inner.exec_module(module)
        for name in SETS:
            setattr(module, name, made(name))


class Misc(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """`scipy.misc`'s functions of images, which SciPy no longer has."""

    def find_spec(self, name, path, target=None):
        if name != "scipy.misc":
            return None
        return importlib.util.spec_from_loader(name, self)

    def exec_module(self, module):
        import numpy as np
        from PIL import Image

        def toimage(array, **options):
            array = np.asarray(array)
            if array.dtype != np.uint8:
                low, high = array.min(), array.max()
                array = ((array - low) / max(high - low, 1e-12) * 255).astype(np.uint8)
            return Image.fromarray(array)

        def imresize(array, size, interp="bilinear", mode=None):
            image = toimage(array)
            if isinstance(size, int):
                size = [s * size / 100 for s in image.size[::-1]]
            if isinstance(size, float):
                size = [s * size for s in image.size[::-1]]
            return np.asarray(image.resize((int(size[1]), int(size[0]))))

        def imread(name, flatten=False, mode=None):
            image = Image.open(name)
            return np.asarray(image.convert("F" if flatten else mode or image.mode))

        module.imread, module.imresize, module.toimage = imread, imresize, toimage
        module.imsave = lambda name, array: toimage(array).save(name)


class Peer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """TensorFlow 2 as the programs expect it, with the data that Weft's data sets have.

    With `MADE_COMPAT`, `tensorflow` is its `tensorflow.compat.v1`. Keras is version 2, if that is
    installed (`tf_keras`). What reads MNIST, which version 2 no longer has, is Weft's.
    """

    begun = False

    def find_spec(self, name, path, target=None):
        if f"{READS_MNIST}.".startswith(f"{name}.") and name != "tensorflow":
            is_package = not name.endswith("input_data")
            return importlib.util.spec_from_loader(name, self, is_package=is_package)
        if name != "tensorflow" or self.begun:
            return None
        self.begun = True
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec):
        if spec.name != "tensorflow":
            return None
        module = importlib.import_module("tensorflow")
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        sys.path.append(str(Path(__file__).resolve().parent.parent.parent.parent))
        if module.__name__.endswith("input_data"):
            made = importlib.import_module("weft.tf1.contrib.learn.datasets.mnist")
            module.read_data_sets = made.read_data_sets
        if module.__name__ != "tensorflow":
            return
        module.__spec__ = self.spec
        for name in ("mnist", "fashion_mnist", "cifar10", "cifar100"):
            made = importlib.import_module(f"weft.tf1.keras.datasets.{name}")
            getattr(module.keras.datasets, name).load_data = made.load_data
        if os.environ.get("MADE_COMPAT"):
            v1 = module.compat.v1
            v1.disable_v2_behavior()
            names = {k: v for k, v in vars(v1).items() if not k.startswith("__")}
            vars(module).update(names)


sys.meta_path.insert(0, Sets())
sys.meta_path.insert(0, Misc())
if os.environ.get("MADE_OLD_NUMPY"):  # names that NumPy had when these programs were written
    import numpy

    for old, new in {"float": float, "int": int, "object": object}.items():
        setattr(numpy, old, new)
    numpy.lib.pad = numpy.pad
    array_now = numpy.array

    def array(value, *args, **options):
        """Lists of unequal lengths were an array of objects."""
        try:
            return array_now(value, *args, **options)
        except ValueError as error:
            if "inhomogeneous" not in str(error):
                raise
            return array_now(value, dtype=object)

    numpy.array = array
if os.environ.get("MADE_PEER") == "tensorflow":
    if importlib.util.find_spec("tf_keras"):
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
    sys.meta_path.insert(0, Peer())
if os.environ.get("MADE_PEER") == "torch":
    sys.modules["mpi4py"] = None  # Lightning asks it, and fails if there is no MPI
    importlib.import_module("horovod_alone")
if "multiprocessing" not in " ".join(sys.orig_argv):
    same = "same_values_tensorflow" if os.environ.get("MADE_OLD_NUMPY") else "same_values"
    for asked, module in {"MADE_VALUES": same, "MADE_STEPS": "timed_steps"}.items():
        if asked in os.environ:
            importlib.import_module(module)
