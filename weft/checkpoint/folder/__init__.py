"""A folder of checkpoints: one folder a step, committed whole, found whole or not at all."""
