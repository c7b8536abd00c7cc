"""Matrix products: what is multiplied, how it is blocked, and the loops around the microkernel."""
