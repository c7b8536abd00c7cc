"""Runs other projects' public test suites against Weft: `python -m tools.suites --help`.

A suite's own files run unchanged, under pytest, in a process where the other library's name means
Weft. From the bottom up:

- `absent`: stands for a name that Weft does not have;
- `mirror`: modules under another library's names, and the imports that find them;
- `raising`: assertions about errors;
- `pytorch`: the meaning of PyTorch's names;
- `worker`: one process that runs one test file; `runner`: starts it, and restarts it after a crash;
- `scope`: what Weft does not support; `report`: the figures.
"""
