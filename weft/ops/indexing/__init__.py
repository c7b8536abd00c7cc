"""Indexing: reading and writing elements by position, and sorting."""
