"""Writes the pages: `python -m tools.compat`."""

from tools.compat.page import DOCS, LACKING, lacking, pages

DOCS.mkdir(exist_ok=True)
LACKING.write_bytes(lacking())
for path, text in pages().items():
    path.write_text(text)
    print(path.name, text.split("\nWeft has ")[1].partition("\n")[0])
