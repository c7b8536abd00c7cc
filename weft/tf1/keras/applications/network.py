"""The networks of `tf.keras.applications`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from weft.documentation import named
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras import layers as kl
from weft.tf1.keras.engine.input_layer import Input
from weft.tf1.keras.engine.model import Model

__all__ = [
    "VGG16", "VGG19", "MobileNet", "MobileNetV2", "ResNet50", "ResNet50V2", "ResNet101",
    "ResNet101V2", "ResNet152", "ResNet152V2",
]  # fmt: skip

_RELU6: Final = partial(kl.ReLU, 6.0)
_EIGHT: Final = 8
_FIRST: Final = 2
_VGG: Final = ((64, 2), (128, 2), (256, None), (512, None), (512, None))
_RESNET: Final = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
"""The blocks of a ResNet's four stages, by its layers."""
_MOBILE: Final = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5,
    (1024, 2), (1024, 1),
)  # fmt: skip
_MOBILE_2: Final = (
    (16, 1, 1), (24, 2, 6), (24, 1, 6), (32, 2, 6), *[(32, 1, 6)] * 2, (64, 2, 6),
    *[(64, 1, 6)] * 3, *[(96, 1, 6)] * 3, (160, 2, 6), *[(160, 1, 6)] * 2, (320, 1, 6),
)  # fmt: skip


def _vgg(x: Any, top: bool, classes: int, activation: Any, deep: int) -> Any:
    for block, (filters, count) in enumerate(_VGG, 1):
        for number in range(1, (count or deep) + 1):
            name = f"block{block}_conv{number}"
            x = kl.Conv2D(filters, 3, activation="relu", padding="same", name=name)(x)
        x = kl.MaxPooling2D(2, 2, name=f"block{block}_pool")(x)
    if top:
        x = kl.Flatten(name="flatten")(x)
        x = kl.Dense(4096, activation="relu", name="fc1")(x)
        x = kl.Dense(4096, activation="relu", name="fc2")(x)
        x = kl.Dense(classes, activation=activation, name="predictions")(x)
    return x


def _convolved(
    x: Any, filters: int, size: int, name: str, relu: bool = True, **options: Any
) -> Any:
    return _normed(kl.Conv2D(filters, size, name=f"{name}_conv", **options)(x), name, relu)


def _normed(x: Any, name: str, relu: bool = True) -> Any:
    x = kl.BatchNormalization(epsilon=1.001e-5, name=f"{name}_bn")(x)
    return kl.Activation("relu", name=f"{name}_relu")(x) if relu else x


def _block(x: Any, filters: int, name: str, first: bool, step: int) -> Any:
    """Convolutions, then norms, and what goes around them (He et al., 2015)."""
    around = _convolved(x, 4 * filters, 1, f"{name}_0", False, strides=step) if first else x
    x = _convolved(x, filters, 1, f"{name}_1", strides=step)
    x = _convolved(x, filters, 3, f"{name}_2", padding="same")
    x = _convolved(x, 4 * filters, 1, f"{name}_3", False)
    return kl.Activation("relu", name=f"{name}_out")(kl.Add(name=f"{name}_add")([around, x]))


def _block_2(x: Any, filters: int, name: str, first: bool, step: int) -> Any:
    """Norms before convolutions (He et al., 2016)."""
    ready = _normed(x, f"{name}_preact")
    if first:
        around = kl.Conv2D(4 * filters, 1, strides=step, name=f"{name}_0_conv")(ready)
    else:
        around = kl.MaxPooling2D(1, strides=step)(x) if step > 1 else x
    x = kl.Conv2D(filters, 1, use_bias=False, name=f"{name}_1_conv")(ready)
    x = kl.ZeroPadding2D(1, name=f"{name}_2_pad")(_normed(x, f"{name}_1"))
    x = kl.Conv2D(filters, 3, strides=step, use_bias=False, name=f"{name}_2_conv")(x)
    x = kl.Conv2D(4 * filters, 1, name=f"{name}_3_conv")(_normed(x, f"{name}_2"))
    return kl.Add(name=f"{name}_out")([around, x])


def _resnet(
    x: Any, top: bool, classes: int, activation: Any, layers: int = 50, after: bool = True
) -> Any:
    """The first block of a stage has the step; if norms come first, the last of the one before."""
    x = kl.ZeroPadding2D(3, name="conv1_pad")(x)
    x = _convolved(x, 64, 7, "conv1", strides=2) if after else \
        kl.Conv2D(64, 7, strides=2, name="conv1_conv")(x)  # fmt: skip
    x = kl.ZeroPadding2D(1, name="pool1_pad")(x)
    x = kl.MaxPooling2D(3, 2, name="pool1_pool")(x)
    build = _block if after else _block_2
    for stage, count in enumerate(_RESNET[layers], _FIRST):
        for i in range(1, count + 1):
            steps = stage > _FIRST and i == 1 if after else stage < _FIRST + 3 and i == count
            x = build(x, 16 << stage, f"conv{stage}_block{i}", i == 1, 2 if steps else 1)
    x = x if after else _normed(x, "post")
    if top:
        x = kl.GlobalAveragePooling2D(name="avg_pool")(x)
        x = kl.Dense(classes, activation=activation, name="predictions")(x)
    return x


def _plain(x: Any, layer: Any, names: Sequence[str], relu: bool = True, **options: Any) -> Any:
    """A convolution without bias, normalized."""
    x = layer(x)
    x = kl.BatchNormalization(name=names[0], **options)(x)
    return _RELU6(name=names[1])(x) if relu else x


def _depthwise(x: Any, step: int, name: str, pad: str, frame: Any) -> tuple[Any, Any]:
    """The input, padded by a frame where there are steps, and the layer."""
    if step > 1:
        x = kl.ZeroPadding2D(frame, name=pad)(x)
    padding = "same" if step == 1 else "valid"
    return x, kl.DepthwiseConv2D(3, step, padding, use_bias=False, name=name)


def _mobile(
    x: Any, top: bool, classes: int, activation: Any, alpha: float = 1.0, dropout: float = 1e-3
) -> Any:
    start = kl.Conv2D(int(32 * alpha), 3, 2, "same", use_bias=False, name="conv1")
    x = _plain(x, start, ("conv1_bn", "conv1_relu"))
    for i, (filters, step) in enumerate(_MOBILE, 1):
        x, layer = _depthwise(x, step, f"conv_dw_{i}", f"conv_pad_{i}", ((0, 1), (0, 1)))
        x = _plain(x, layer, (f"conv_dw_{i}_bn", f"conv_dw_{i}_relu"))
        wide = int(filters * alpha)
        layer = kl.Conv2D(wide, 1, padding="same", use_bias=False, name=f"conv_pw_{i}")
        x = _plain(x, layer, (f"conv_pw_{i}_bn", f"conv_pw_{i}_relu"))
    if top:
        width = x.shape.as_list()[-1]
        x = kl.Reshape((1, 1, width), name="reshape_1")(kl.GlobalAveragePooling2D()(x))
        x = kl.Conv2D(classes, 1, padding="same", name="conv_preds")(
            kl.Dropout(dropout, name="dropout")(x)
        )
        x = kl.Activation(activation, name="predictions")(
            kl.Reshape((classes,), name="reshape_2")(x)
        )
    return x


def _whole(width: float) -> int:
    """The nearest multiple of 8 that is at most a tenth smaller."""
    near = max(_EIGHT, int(width + _EIGHT / 2) // _EIGHT * _EIGHT)
    return near + _EIGHT if near < 0.9 * width else near


def _mobile_2(x: Any, top: bool, classes: int, activation: Any, alpha: float = 1.0) -> Any:
    normal: dict[str, Any] = {"epsilon": 1e-3, "momentum": 0.999}
    start = kl.Conv2D(_whole(32 * alpha), 3, 2, "same", use_bias=False, name="Conv1")
    x = _plain(x, start, ("bn_Conv1", "Conv1_relu"), **normal)
    for i, (filters, step, growth) in enumerate(_MOBILE_2):
        name, width, before = f"block_{i}_" if i else "expanded_conv_", x.shape.as_list()[-1], x
        if i:
            layer = kl.Conv2D(growth * width, 1, padding="same", use_bias=False,
                              name=f"{name}expand")  # fmt: skip
            x = _plain(x, layer, (f"{name}expand_BN", f"{name}expand_relu"), **normal)
        frame = tuple([(n % 2 if n else 0, 1) for n in x.shape.as_list()[1:3]])
        x, layer = _depthwise(x, step, f"{name}depthwise", f"{name}pad", frame)
        x = _plain(x, layer, (f"{name}depthwise_BN", f"{name}depthwise_relu"), **normal)
        narrow = _whole(int(filters * alpha))
        layer = kl.Conv2D(narrow, 1, padding="same", use_bias=False, name=f"{name}project")
        x = _plain(x, layer, (f"{name}project_BN", ""), False, **normal)
        if width == narrow and step == 1:
            x = kl.Add(name=f"{name}add")([before, x])
    last = _whole(1280 * alpha) if alpha > 1.0 else 1280
    layer = kl.Conv2D(last, 1, use_bias=False, name="Conv_1")
    x = _plain(x, layer, ("Conv_1_bn", "out_relu"), **normal)
    if top:
        x = kl.GlobalAveragePooling2D()(x)
        x = kl.Dense(classes, activation=activation, name="predictions")(x)
    return x


def _application(name: str, build: Callable[..., Any], title: str) -> Callable[..., Model]:
    """A function that builds the network."""

    @named(name, f"""{title}

    Args:
        include_top: whether with the layers that classify.
        weights: a file of weights; `None` for initial ones.
        input_tensor: what `Input` gave, instead of a new input.
        input_shape: of an image, (rows, columns, 3); 224 x 224 by default.
        pooling: without the top, `"avg"` or `"max"` over the places, or `None`.
        classes: how many.
        classifier_activation: of the last layer.
        options: `alpha`, the width of a MobileNet, and `dropout`.

    Raises:
        ArgumentError: the weights are to be fetched, or there is no such file.
    """)  # fmt: skip
    def make(
        include_top: bool = True, weights: Any = "imagenet", input_tensor: Any = None,
        input_shape: Sequence[int] | None = None, pooling: str | None = None, classes: int = 1000,
        classifier_activation: Any = "softmax", **options: Any,
    ) -> Model:  # fmt: skip
        if weights is not None and not os.path.exists(weights):
            text = "expected weights=None or a file, such as one that Keras's save_weights wrote"
            raise fail(ArgumentError, f"{name}: {text}, got {weights!r}; nothing is downloaded")
        shape = tuple(input_shape or ((224, 224, 3) if include_top else (None, None, 3)))
        x = Input(shape) if input_tensor is None else input_tensor
        y = build(x, include_top, classes, classifier_activation, **options)
        if not include_top and pooling is not None:
            kinds = {"avg": kl.GlobalAveragePooling2D, "max": kl.GlobalMaxPooling2D}
            if pooling not in kinds:
                text = f"expected pooling of {tuple(kinds)} or None, got {pooling!r}"
                raise fail(ArgumentError, f"{name}: {text}")
            y = kinds[pooling]()(y)
        model = Model(x, y, name=name.lower())
        if weights is not None:
            model.load_weights(weights)
        return model

    return make


VGG16 = _application("VGG16", partial(_vgg, deep=3), "VGG of 16 layers (Simonyan, 2014).")
VGG19 = _application("VGG19", partial(_vgg, deep=4), "VGG of 19 layers (Simonyan, 2014).")
ResNet50, ResNet101, ResNet152 = (
    _application(f"ResNet{n}", partial(_resnet, layers=n), f"ResNet of {n} layers (He, 2015).")
    for n in _RESNET
)
ResNet50V2, ResNet101V2, ResNet152V2 = (
    _application(
        f"ResNet{n}V2", partial(_resnet, layers=n, after=False),
        f"ResNet of {n} layers with norms before convolutions (He et al., 2016).",
    )
    for n in _RESNET
)  # fmt: skip
MobileNet = _application("MobileNet", _mobile, "MobileNet (Howard et al., 2017).")
MobileNetV2 = _application("MobileNetV2", _mobile_2, "MobileNetV2 (Sandler et al., 2018).")
