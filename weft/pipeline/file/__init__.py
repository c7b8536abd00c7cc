"""Sources that read files: lines, records, tables, archives."""

from weft import exports as _exports
from weft.pipeline.file.archive import Archive as Archive
from weft.pipeline.file.files import *
from weft.pipeline.file.record import *
from weft.pipeline.file.table import Rows as Rows
from weft.pipeline.file.text import Lines as Lines

_exports.gather(globals())
