"""Loops and branches as launches with records between them that tell where the program goes on."""
