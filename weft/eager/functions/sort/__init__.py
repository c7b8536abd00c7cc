"""Sorting, order statistics, counts and sets."""
