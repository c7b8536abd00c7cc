"""Loops and branches as launches, with records in between that redirect control flow."""
