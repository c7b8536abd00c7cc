"""The machine and the process: its memory, its cores, garbage collection and Ctrl-C."""
