"""What runs a structure: the tiers, and what comes before and after a run."""
