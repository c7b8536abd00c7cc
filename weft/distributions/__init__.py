"""Probability distributions under PyTorch's names: sampling, densities, KL divergences.

>>> import weft as wf
>>> normal = wf.distributions.Normal(0.0, 2.0)
>>> normal.cdf(wf.tensor(0.0))
tensor(0.5000)
"""

from __future__ import annotations

from weft import exports as _exports
from weft.distributions import constraints as constraints
from weft.distributions import kl as kl
from weft.distributions import transforms as transforms
from weft.distributions import utils as utils
from weft.distributions.categorical import *
from weft.distributions.constraint_registry import biject_to as biject_to
from weft.distributions.constraint_registry import transform_to as transform_to
from weft.distributions.count import *
from weft.distributions.distribution import *
from weft.distributions.independent import Independent as Independent
from weft.distributions.interval import *
from weft.distributions.kl import *
from weft.distributions.location_scale import *
from weft.distributions.matrix import *
from weft.distributions.mixture_same_family import MixtureSameFamily as MixtureSameFamily
from weft.distributions.multivariate_normal import *
from weft.distributions.positive import *
from weft.distributions.relaxed import RelaxedBernoulli as RelaxedBernoulli
from weft.distributions.relaxed import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from weft.distributions.transformed_distribution import (
    TransformedDistribution as TransformedDistribution,
)
from weft.distributions.transforms import *

_exports.gather(globals(), "constraints", "kl", "transforms", "utils")
