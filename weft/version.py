"""The version, where the package and its commands find it."""

__version__ = "0.1.0"
