"""What a structure consists of: routines of its calls and gradients, or one graph."""
