"""Session hooks: what is called around each run of a monitored session."""
