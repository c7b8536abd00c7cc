"""Elementwise operations, with broadcasting."""
