"""Branches and loops: operations whose attributes hold what they run."""
