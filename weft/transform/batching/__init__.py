"""Batching rules: what an operation becomes when some of its inputs have a batch axis in front."""
