"""Formulas of metrics: counts of decisions, shares of them, areas under curves, rankings."""
