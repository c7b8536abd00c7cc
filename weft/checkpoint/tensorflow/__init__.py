"""TensorFlow's checkpoints: bundles of the second version read and written, the first one read."""
