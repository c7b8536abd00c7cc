"""TensorFlow checkpoints: reads and writes the V2 bundle format, reads the V1 format."""
