"""The names of `weft.tf1.api`."""

from weft.tf1.api import *
from weft.tf1.api import __version__ as __version__
