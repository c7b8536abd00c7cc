"""Reductions over axes, and cumulative operations."""
