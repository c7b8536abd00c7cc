"""Public programs, drawn before any was tried, run unchanged through `weft run`.

`programs.json` lists them, with commits, arguments that cut their steps, small patches of
constants, and data that are made. They were drawn by a seeded random choice of a repository, then
of a program in it that trains, at most two of one repository; those that need packages, weights or
data that cannot be had were replaced by the next ones drawn. Nothing here copies their code.
"""
