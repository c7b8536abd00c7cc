"""What is kept of models: configurations, checkpoints, HDF5 files, the table of layers."""
