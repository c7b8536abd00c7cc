"""Batching rules: what an operation becomes when some inputs have a leading batch axis."""
