"""Devices: where stages of a step run, and where their memory is."""
