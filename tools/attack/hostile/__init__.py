"""Drawn calls: what there is to call, and with what.

- `value`: arguments, fitting and hostile ones, by a parameter's name;
- `surface`: the names that users may call, of every front end;
- `calling`: a drawn call, made in one front end;
- `agreement`: whether two results are one.
"""
