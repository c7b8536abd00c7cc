"""Sums, extremes, norms and statistics over axes."""
