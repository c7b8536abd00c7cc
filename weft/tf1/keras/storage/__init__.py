"""Saving of models: configurations, checkpoints, HDF5 files, summary tables."""
