"""Monitored sessions: initialized or restored, with hooks."""
