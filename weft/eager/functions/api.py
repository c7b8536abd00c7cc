"""The public names of the eager front end in `import weft as wf`, from `table.TABLE`."""

from __future__ import annotations

from weft.eager.functions.table import public

_FOUND, OUT = public()
globals().update(_FOUND, __all__=[*_FOUND])
