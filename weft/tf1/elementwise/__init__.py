"""Elementwise functions, with broadcasting."""
