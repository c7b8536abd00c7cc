"""Indexing: elements by their positions."""
