"""Control flow: branches and loops, whose attributes hold the functions that they run."""
