"""Queues, barriers, accumulators, tables and readers: what a step may wait for."""
