"""Batch normalization."""

from __future__ import annotations

from weft.tf1.framework.option import ANY
from weft.tf1.keras.layers import normalization as keras
from weft.tf1.layers.scoped import Scoped, documented, layer_function


@documented
class BatchNormalization(Scoped, keras.BatchNormalization):
    """Batch normalization; the updates of its moving averages are in `GraphKeys.UPDATE_OPS`.

    In training it uses the batch's statistics, else the moving averages.

    Raises:
        ArgumentError: for `renorm`, `virtual_batch_size` or `adjustment`.
    """

    _fused = False


batch_normalization = layer_function(
    BatchNormalization,
    flags={"training": False},
    ignored={
        "fused": ANY, "renorm": False, "renorm_clipping": ANY, "renorm_momentum": ANY,
        "virtual_batch_size": None, "adjustment": None,
    },
    returns="Tensor",
)  # fmt: skip
