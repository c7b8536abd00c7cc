"""Define by run: operations are recorded as they are called and computed when someone looks."""
