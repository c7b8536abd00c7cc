"""Transforms of values, with the logarithms of their Jacobian determinants.

>>> import weft as wf
>>> exp = wf.distributions.transforms.ExpTransform()
>>> exp.inv(exp(wf.tensor(2.0)))
tensor(2.)
"""

from __future__ import annotations

from weft import exports as _exports
from weft.distributions.transforms.joined import *
from weft.distributions.transforms.scalar import *
from weft.distributions.transforms.transform import *
from weft.distributions.transforms.transform import identity_transform as identity_transform
from weft.distributions.transforms.vector import *

_exports.gather(globals(), "identity_transform")
