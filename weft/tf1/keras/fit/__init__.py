"""Training of models: compiled arguments, steps, data, and the run itself."""
