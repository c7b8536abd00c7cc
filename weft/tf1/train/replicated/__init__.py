"""Training by several processes: where variables are, and steps that they make together."""
