"""Robustness tests of Weft: `python -m tools.attack --help`, docs/RELIABILITY.md.

An attack is a module whose `begin()` returns a function that runs one random case and returns its
verdict. From the bottom up:

- `verdict`: how a case ends; `plan`: the attacks and their limits;
- `isolated`: a function in a forked process; `identity`: with fewer rights;
- `mutation`: damaged bytes; `timer`: timed signals; `training`, `program`: what is disturbed;
- `hostile`: random calls;
- `shared`, `endless`: what threads share, and what waits for endless loops;
- `calls`, `files`, `kills`, `signals`, `caches`, `memory`, `graphs`, `trainers`, `control`,
  `threads`, `loops`, `extremes`: the attacks, and of ranks `ranks`, `crowds`, `hosts`;
- `tasks`: the attack of clusters; `task_loop`: their processes, which `task_processes` starts;
  `task_account`: who was told what; `task_read`: what the servers and the checkpoint hold;
- `worker`: a process that runs cases; `runner`: starts workers, and restarts them after a death;
- `state`: the results of a run so far; `report`: the table and the findings.
"""
