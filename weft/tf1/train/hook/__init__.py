"""Session hooks, called around each run of a monitored session."""
