"""What `import weft as wf` offers of the define-by-run front end: the names of `table.TABLE`."""

from __future__ import annotations

from weft.eager.functions.table import public

_FOUND, OUT = public()
globals().update(_FOUND, __all__=[*_FOUND])
