"""Calls that are recorded as earlier ones were, without asking the function again."""
