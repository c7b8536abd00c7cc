"""Tables of rows by id, which grow with the ids seen, and bags of rows of dense tables."""

from __future__ import annotations

from weft import exports
from weft.table.first_row import *
from weft.table.optimizer import *

exports.gather(globals())
