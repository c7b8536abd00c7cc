"""The names of `weft.tf1.api`."""

from weft.tf1.api import *
from weft.tf1.version import VERSION as __version__
