"""Data shards, given out by the chief to whoever is free."""
