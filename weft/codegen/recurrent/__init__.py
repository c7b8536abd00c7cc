"""Recurrent layers: one launch per time step, weights packed once: see `nest`."""
