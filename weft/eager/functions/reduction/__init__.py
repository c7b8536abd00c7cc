"""Reductions: sums, minima, maxima, norms and statistics over axes."""
