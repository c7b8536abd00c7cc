"""Recurrent layers: a launch a time step, weights packed once: see `nest`."""
