"""Measurements beside the frameworks people use, interleaved in one run: `python -m bench`."""
