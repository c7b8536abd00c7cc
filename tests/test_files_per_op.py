"""An operation is in every front end by its face: its name stands in the file of its declaration.

Counted are files written by hand that define the name (`def exp`, `exp = ...`) or offer it: in
`__all__`, in a row of `Names`, in a face, by an import of a package. What only uses it is not
counted.
"""

import ast
import re
import zlib
from functools import cache
from pathlib import Path

import pytest

import weft
from weft import nn
from weft.eager.functions.elementwise.from_op import WRITTEN
from weft.ops.declaration.face import FACES

ROOT = Path(weft.__file__).parent
APART = ("codegen", "ops/declaration", "tf1/keras/layers")
"""The emitter's functions of scalars, and layers, have some of these names, too."""


def told(tree: ast.Module) -> set[str]:
    """The names that a module defines or offers."""
    gathers = any(ast.unparse(s).startswith("_exports.gather(") for s in tree.body)
    names: set[str] = set()
    bodies = [tree.body, *(n.body for n in tree.body if isinstance(n, ast.ClassDef))]
    for statement in (s for body in bodies for s in body):
        match statement:
            case ast.FunctionDef(name=name):
                names.add(name)
            case ast.ImportFrom(names=offered) if gathers:
                names |= {alias.asname or alias.name for alias in offered}
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                single = not isinstance(statement, ast.Assign)
                targets = [statement.target] if single else statement.targets
                own = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                names |= own | (words(statement.value) if "__all__" in own else set())
            case _:
                pass
    values = [s for s in tree.body if not isinstance(s, ast.FunctionDef | ast.ClassDef)]
    values += [d for s in tree.body if isinstance(s, ast.FunctionDef) for d in s.decorator_list]
    for call in (node for value in values for node in ast.walk(value)):
        match call:
            case ast.Call(func=ast.Name(id="Face" | "Names")):
                names |= words(call)
            case _:
                pass
    return names


def words(value: ast.AST | None) -> set[str]:
    """The words of strings that are lists of names; sentences are not."""
    texts = [n.value for n in ast.walk(value) if isinstance(n, ast.Constant)] if value else []
    lists = [t for t in texts if isinstance(t, str) and re.fullmatch(r"[\w\s./]+", t)]
    return {word.rstrip("_") for text in lists for word in re.findall(r"\w+", text)}


def drawn() -> list[str]:
    """Twenty operations and formulas: not activations, which `nn` has, too, nor any by hand."""
    plain = [
        name
        for name, source in FACES.items()
        if source.face.torch and name not in {*WRITTEN, *nn.functional.__all__, "equal"}
    ]
    return sorted(plain, key=lambda name: zlib.crc32(name.encode()))[:20]


@cache
def told_by_file() -> dict[str, set[str]]:
    drawn_names = re.compile(rf"\b({'|'.join([*drawn(), 'lgamma', 'cumsum'])})_?\b")
    texts = {str(p.relative_to(ROOT)): p.read_text() for p in ROOT.rglob("*.py")}
    return {
        name: told(ast.parse(text))
        for name, text in texts.items()
        if not name.startswith(APART) and drawn_names.search(text)
    }


def files_of(name: str) -> set[str]:
    return {path for path, names in told_by_file().items() if name in names}


@pytest.mark.parametrize("name", drawn())
def test_a_name_stands_in_two_files_at_most(name):
    assert len(files_of(name)) <= 2, files_of(name)


def test_one_file_for_a_function_without_options():
    assert files_of("lgamma") == {"ops/special/gamma.py"}
    own = {"jax/lax/structure.py", "jax/numpy/reduction.py"}  # JAX's `reverse`, and narrow results
    assert len(files_of("cumsum") - own) <= 2


def test_a_second_spelling_is_seen():
    table = """
Names(unary, "floor lgamma", BOTH)
__all__ = ["acos"]
tan = 3
log = of_two("log1p")
"""
    assert told(ast.parse(table)) >= {"lgamma", "acos", "tan", "log"}
    assert "log1p" not in told(ast.parse(table))  # which is only used
