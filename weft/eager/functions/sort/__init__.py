"""Order, and what follows from it: sorting, ranks, counts, sets."""
