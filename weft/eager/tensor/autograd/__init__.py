"""Gradients: backward passes, hooks, functions of the user, tracing, anomaly mode."""
