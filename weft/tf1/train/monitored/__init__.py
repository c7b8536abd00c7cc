"""Monitored sessions: a model is initialized or restored, hooks are called."""
