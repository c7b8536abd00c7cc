"""A folder of checkpoints: one subfolder per step, committed atomically."""
