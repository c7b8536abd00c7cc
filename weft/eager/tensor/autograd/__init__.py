"""Autograd: backward passes, hooks, custom functions, tracing, anomaly mode."""
