"""Random calls: what can be called, and with which arguments.

- `value`: valid and hostile arguments, chosen by a parameter's name;
- `surface`: the public names of every front end;
- `calling`: a random call in one front end;
- `agreement`: whether two results are equal.
"""
