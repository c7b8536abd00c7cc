"""Sessions: feeds, fetches, runs."""
