"""Reductions over axes, and running ones."""
