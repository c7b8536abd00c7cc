"""TensorFlow's eager execution: a graph whose operations are computed at once."""
