"""Attacks on Weft: `python -m tools.attack --help`, docs/RELIABILITY.md.

An attack is a module whose `begin()` gives a function that runs one case, drawn from random numbers
of its own, and says how it ended. From the bottom up:

- `verdict`: how a case ends; `plan`: the attacks and their limits;
- `isolated`: a function in a forked process; `identity`: with fewer rights;
- `mutation`: damaged bytes; `timer`: signals in time; `training`, `program`: what is disturbed;
- `hostile`: drawn calls;
- `calls`, `files`, `kills`, `signals`, `caches`, `memory`, `graphs`: the attacks;
- `worker`: one process that runs cases; `runner`: starts it, and again after a death;
- `state`: what a run has found so far; `report`: the table, the findings.
"""
