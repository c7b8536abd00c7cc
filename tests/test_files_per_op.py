"""An operation is in every front end by its face: its name stands in the file of its declaration.

Counted are files written by hand that define a name or list it: `def exp`, `exp = ...`, a string in
a table or in `__all__`, an import that a package offers. Calls and other imports are not counted.
"""

import ast
import re
import zlib
from functools import cache
from pathlib import Path

import weft
from weft.ops.declaration.face import FACES

ROOT = Path(weft.__file__).parent
ENGINE = ("codegen", "passes", "runtime", "transform", "ops/declaration")
"""They speak of operations and of the emitter's functions, and give users no names."""


def names_told(tree: ast.Module) -> set[str]:
    """The names that a module defines or lists."""
    offers = any(isinstance(n, ast.Attribute) and n.attr == "gather" for n in ast.walk(tree))
    told: set[str] = set()
    bodies = [tree.body, *(n.body for n in tree.body if isinstance(n, ast.ClassDef))]
    for statement in (s for body in bodies for s in body):
        match statement:
            case ast.FunctionDef(name=name):
                told.add(name)
                told |= {w for d in statement.decorator_list for w in words(d)}
            case ast.ImportFrom(names=names) if offers:
                told |= {alias.asname or alias.name for alias in names}
            case ast.Assign(targets=targets, value=value):
                told |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                told |= words(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                told |= {name} | words(value)
            case ast.AugAssign(value=value):
                told |= words(value)
            case _:
                pass
    return told


def words(value: ast.AST) -> set[str]:
    """The words of strings that are lists of names; sentences are not."""
    texts = [n.value for n in ast.walk(value) if isinstance(n, ast.Constant)]
    lists = [t for t in texts if isinstance(t, str) and re.fullmatch(r"[\w\s./]+", t)]
    return {word.rstrip("_") for text in lists for word in re.findall(r"\w+", text)}


@cache
def told_by_file() -> dict[str, set[str]]:
    """By each file of the front ends and the catalogue, the names that it defines or lists."""
    paths = {str(p.relative_to(ROOT)): p for p in ROOT.rglob("*.py")}
    return {
        name: names_told(ast.parse(path.read_text()))
        for name, path in paths.items()
        if not name.startswith(ENGINE)
    }


def files_of(name: str) -> set[str]:
    return {path for path, told in told_by_file().items() if name in told}


if __name__ == "__main__":
    import weft.ops

    for n in sorted(FACES, key=lambda n: zlib.crc32(n.encode())):
        if FACES[n].face.torch:
            print(n, sorted(files_of(n)))
