"""Define by run: operations are recorded as they are called and computed when someone looks.

Three storeys: `record` (what was called), `tensor` (what a tensor is), `functions` (what it can
do). Importing any of them gives tensors their methods.
"""

from weft.eager.functions import table as table
