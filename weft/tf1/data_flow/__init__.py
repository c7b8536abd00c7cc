"""Queues, barriers and accumulators in the graph."""
