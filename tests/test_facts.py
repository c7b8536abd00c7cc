"""Facts about an operation are in its declaration: no other code decides by its name."""

import ast
import re
from collections.abc import Iterator

import numpy as np
import pytest

from tools.imports import texts
from weft.errors import GraphError
from weft.host.garbage_collection import uncollected
from weft.ops.declaration import NO_GRADIENT, REGISTRY, Composite, Op, Opaque, Reduce, defop
from weft.ops.declaration.fact import AS_GIVEN, Autocast
from weft.ops.declaration.rule import floating, same_shape

NAMES = frozenset(REGISTRY)
NAMED = {"family", "name", "op"}  # what a name of an operation is called
BELOW = ("weft.transform", "weft.passes", "weft.codegen", "weft.runtime")
RULES = {"RULES", "WHOLE_RULES", "FAMILIES", "__all__"}  # rewrites and kernels as data, names
EMITTER = {"weft.codegen.loop.arithmetic", "weft.codegen.loop.expression"}
"""These speak of the emitter's operations on scalars, such as `b.maximum(x, y)`."""


QUOTED = re.compile(r"""["'](\w+)["']""")
DECISIVE = (
    ast.Assign, ast.AnnAssign, ast.Call, ast.Compare, ast.Dict, ast.List, ast.Match, ast.Set,
    ast.Subscript, ast.Tuple,
)  # fmt: skip


def words(node: ast.AST | None) -> list[str]:
    """The string of a constant, or those of a literal collection, `frozenset(...)` included."""
    match node:
        case ast.Constant(value=str(word)):
            return [word]
        case ast.Set() | ast.Tuple() | ast.List():
            return [w for x in node.elts for w in words(x)]
        case ast.Dict():
            return [w for x in node.keys for w in words(x)]
        case ast.Call(func=ast.Name(id="frozenset" | "set"), args=[items]):
            return words(items)
        case _:
            return []


def is_name(node: ast.AST, below: bool) -> bool:
    """Whether an expression is one that holds an operation's name, such as `node.op`."""
    match node:
        case ast.Attribute(attr="op") | ast.Attribute(value=ast.Name("op" | "plan"), attr="name"):
            return True
        case ast.Attribute(value=ast.Attribute(attr="op" | "plan"), attr="name"):
            return True
        case ast.Attribute(attr=text) | ast.Name(id=text):
            return below and text in NAMED
        case ast.Call(func=ast.Attribute(value=inner)):  # of what a method makes of it
            return is_name(inner, below)
        case _:
            return False


def decisions(module: str, tree: ast.AST) -> Iterator[str]:
    """What a module decides by operations' names."""
    below = module.startswith(BELOW)
    nodes = [node for node in ast.walk(tree) if isinstance(node, DECISIVE)]
    skipped = {id(x) for rule in nodes if is_rule_table(rule) for x in ast.walk(rule)}
    skipped.update(
        id(x) for node in nodes if isinstance(node, ast.Compare) for x in node.comparators
    )
    for node in nodes:
        used = set() if id(node) in skipped else NAMES.intersection(used_words(node, below))
        if used:
            line = getattr(node, "lineno", 0)
            yield f"{module}:{line} decides by {', '.join(sorted(used))}"


def used_words(node: ast.AST, below: bool) -> list[str]:
    """The words that an expression or a statement decides by, if names of operations they are."""
    match node:
        case ast.Compare():
            sides = [node.left, *node.comparators]
            named = any(is_name(x, below) for x in sides)
            return [w for x in sides for w in words(x)] if named else []
        case ast.Match() if is_name(node.subject, below):
            patterns = [x for c in node.cases for x in ast.walk(c.pattern)]
            return [w for x in patterns if isinstance(x, ast.MatchValue) for w in words(x.value)]
        case ast.Call(func=ast.Attribute(value=x, attr="startswith"), args=[first]) if is_name(
            x, below
        ):
            return [name for w in words(first) for name in NAMES if name.startswith(w)]
        case ast.Subscript(value=ast.Name(id="REGISTRY"), slice=ast.Constant()) if below:
            return words(node.slice)
        case ast.Set() | ast.Dict() | ast.Tuple() | ast.List() if below:
            found = words(node)
            return found if len(found) > 1 and NAMES.issuperset(found) else []
        case _:
            return []


def is_rule_table(node: ast.AST) -> bool:
    """Whether it is a table of rewrites, or of kernel families."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name in RULES
        case _:
            return False


def may_decide(text: str) -> bool:
    """Whether it has an operation's name, or may have the beginning of one, in quotes."""
    return ".startswith(" in text or not NAMES.isdisjoint(QUOTED.findall(text))


@uncollected
def test_nothing_is_decided_by_an_operations_name() -> None:
    outside = {
        name: ast.parse(text)
        for name, text in texts().items()
        if not name.startswith("weft.ops.") and name not in EMITTER and may_decide(text)
    }
    assert [fault for name, tree in outside.items() for fault in decisions(name, tree)] == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("cheap = node.op == 'add'", True),
        ("cheap = node.op not in ('add', 'exp')", True),
        ("lower = {'add', 'exp'}", True),
        ("LINEAR = frozenset({'add', 'negative'})", True),
        ("COST = {'add': 1, 'exp': 9}", True),
        ("y = REGISTRY['add'](x, y)", True),
        ("match node.op:\n    case 'add' | 'exp': pass", True),
        ("fast = plan.name == 'matmul'", True),
        ("rate = node.op.startswith('conv')", True),
        ("if op_of(node) is add: pass", False),
        ("RULES = {'add': (rule,), 'multiply': (rule,)}", False),
        ("mode = how == 'add'", False),
        ("about = {'call': 1, 'work': 2}", False),
    ],
)
def test_the_search_can_find_one(code: str, found: bool) -> None:
    assert bool(list(decisions("weft.passes.example", ast.parse(code)))) is found
    assert may_decide(code) or not found


@pytest.mark.parametrize("lower", [Reduce("add"), Composite(lambda x: x), Opaque("sort")])
def test_what_may_add_up_terms_says_in_which_type(lower: Reduce | Composite | Opaque) -> None:
    def declare(**facts: object) -> Op:
        return defop(
            "total", inputs="x", dtype=floating, shape=same_shape, reference=np.sum,
            vjp=NO_GRADIENT, lower=lower, cases=lambda: (), **facts,  # pyright: ignore
        )  # fmt: skip

    text = f"defop: 'total': a {type(lower).__name__} may add up many terms: expected"
    with pytest.raises(GraphError, match=re.escape(text)):
        declare()
    try:
        assert declare(facts=AS_GIVEN).facts.autocast is Autocast.KEPT
    finally:
        del REGISTRY["total"]


@pytest.mark.parametrize("op", [op for op in REGISTRY.values() if op.facts.fresh], ids=repr)
def test_what_is_fresh_shares_no_memory(op: Op) -> None:
    for case in op.cases():
        xs = [np.array(x) for x in case.inputs]
        ys = [f(*xs, **{**op.attrs, **case.attrs}) for f in (op.reference, op.fast) if f]
        assert not any(np.shares_memory(x, y) for x in xs for y in ys)


@pytest.mark.parametrize("op", [op for op in REGISTRY.values() if op.facts.work], ids=repr)
def test_work_is_counted_from_concrete_shapes(op: Op) -> None:
    work = op.facts.work
    assert work is not None
    for case in op.cases():
        ys = op.reference(*case.inputs, **{**op.attrs, **case.attrs})
        outputs = ys if isinstance(ys, tuple) else (ys,)
        shapes = [np.shape(x) for x in (*case.inputs, *outputs)]
        count = work.products(*shapes, **{**op.attrs, **case.attrs})
        assert count >= sum(np.size(y) for y in outputs) or not count
