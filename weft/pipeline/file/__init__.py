"""Sources that read files: lines, records, tables, archives."""

from weft.pipeline.file.archive import Archive
from weft.pipeline.file.files import Files, found_paths
from weft.pipeline.file.record import Chunks, Records
from weft.pipeline.file.table import Rows
from weft.pipeline.file.text import Lines

__all__ = ["Archive", "Chunks", "Files", "Lines", "Records", "Rows", "found_paths"]
