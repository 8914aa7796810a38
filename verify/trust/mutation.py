"""Seeded faults: every way of changing one operator, comparison, constant, sign or extreme in the constructions of a proofs module.

What counts as construction is read off the source: functions and classes that are marked with `part_of`, or that another module of
the package uses, and those of the same module that these name, directly or through each other; in a module without checks,
everything. Checks, tables and figures are not among them; neither are annotations, decorators, docstrings and the texts of errors.
Nothing is chosen by hand.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.FloorDiv: (ast.Mult,),
    ast.Div: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
}

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}

EXTREMES = {"min": "max", "max": "min"}


@dataclass(frozen=True)
class Mutant:
    """One changed place: `number` counts the places of the module, `after` says what stands there instead."""

    module: str
    number: int
    function: str
    line: int
    kind: str
    before: str
    after: str
    occurrence: int
    """How many changes of the same function read the same and stand before this one."""
    original: str
    """The whole module without the change."""
    used: frozenset[str]
    """What other modules use of it."""

    @property
    def key(self) -> str:
        """Names the change independently of where it stands, so that it is found again when other parts of the module have changed."""
        return f"{self.module} {self.function}: {self.before} -> {self.after} [{self.occurrence}]"

    @property
    def source(self) -> str:
        """The whole module with the change."""
        tree = ast.parse(self.original)
        fault = next(islice(_faults(tree, self.used), self.number, None))
        setattr(fault.node, fault.field, fault.value)
        return ast.unparse(ast.fix_missing_locations(tree))

    @property
    def name(self) -> str:
        """Module, line, and the change."""
        return f"{self.module}:{self.line} {self.function}: {self.before} -> {self.after}"


@dataclass(frozen=True)
class _Fault:
    """One field of one node of a tree, and its other value."""

    function: ast.FunctionDef
    node: ast.AST
    kind: str
    field: str
    value: object


def _faults(tree: ast.Module, used: frozenset[str]) -> Iterator[_Fault]:
    for function in constructions(tree, used):
        for node in _places(function):
            for kind, field, value in _changes(node):
                yield _Fault(function, node, kind, field, value)


def mutants(module: str, source: str, used: frozenset[str] = frozenset()) -> list[Mutant]:
    """All mutants of a module's constructions, in the order of the source; `used` are its names that other modules use."""
    found: list[Mutant] = []
    seen: Counter[tuple[str, str, str]] = Counter()
    for fault in _faults(ast.parse(source), used):
        node, kept = fault.node, getattr(fault.node, fault.field)
        before = ast.unparse(node)
        setattr(node, fault.field, fault.value)
        after = ast.unparse(ast.fix_missing_locations(node))
        setattr(node, fault.field, kept)
        line = getattr(node, "lineno", fault.function.lineno)
        name = fault.function.name
        occurrence = seen[name, before, after]
        seen[name, before, after] += 1
        found.append(Mutant(module, len(found), name, line, fault.kind, before, after, occurrence, source, used))
    return found


def constructions(tree: ast.Module, used: frozenset[str] = frozenset()) -> list[ast.FunctionDef]:
    """The module's functions and methods that belong to constructions: see the module."""
    known = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    if not any(_is_check(node) for node in known.values()):
        return _functions(known.values())
    named = {name: _named(node) for name, node in known.items()}
    for node in tree.body:  # a table of constructions names them for those who use the table
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named |= {target.id: _named(node.value) for target in targets if isinstance(target, ast.Name)}
    wanted = [name for name, node in known.items() if any(_marked(inner) for inner in ast.walk(node))]
    wanted += [name for name in named if name in used]
    reached: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in reached and not (name in known and _is_check(known[name])):
            reached.add(name)
            wanted += named[name] & set(named)
    return _functions(node for name, node in known.items() if name in reached)


def _functions(nodes: Iterable[ast.FunctionDef | ast.ClassDef]) -> list[ast.FunctionDef]:
    """Functions as they are, classes as their methods; functions inside functions belong to the outer ones."""
    inner = [node.body if isinstance(node, ast.ClassDef) else [node] for node in nodes]
    return [node for body in inner for node in body if isinstance(node, ast.FunctionDef)]


def _named(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def uses(source: str, package: str) -> set[tuple[str, str]]:
    """The (module, name) pairs of a package's other modules that a source uses."""
    tree = ast.parse(source)
    found: set[tuple[str, str]] = set()
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == package:
            modules |= {alias.asname or alias.name: f"{package}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
            found |= {(str(node.module), alias.name) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            found.add((modules[node.value.id], node.attr))
    return found


def _marked(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(_called(d) == "part_of" for d in node.decorator_list)


def _is_check(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return any(_called(decorator) == "check" for decorator in node.decorator_list)


def _called(node: ast.expr) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
    return ""


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """All expressions that compute something, depth first."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Assert)):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _places(child)


def _changes(node: ast.AST) -> Iterator[tuple[str, str, object]]:
    """(kind, field of the node, its other value) for each change of one node."""
    match node:
        case ast.BinOp(op=op):
            for other in OPERATORS.get(type(op), ()):
                yield "operator", "op", other()
        case ast.Compare(ops=[comparison]):
            for opposite in COMPARISONS.get(type(comparison), ()):
                yield "comparison", "ops", [opposite()]
        case ast.Constant(value=bool(value)):
            yield "constant", "value", not value
        case ast.Constant(value=int(value)):
            yield "constant", "value", value + 1
            yield "constant", "value", value - 1
        case ast.UnaryOp(op=ast.USub()):
            yield "sign", "op", ast.UAdd()
        case ast.UnaryOp(op=ast.Not()):
            yield "condition", "operand", ast.UnaryOp(ast.Not(), node.operand)
        case ast.BoolOp(op=joined):
            yield "condition", "op", ast.Or() if isinstance(joined, ast.And) else ast.And()
        case ast.Call(func=ast.Name(id=name)) if name in EXTREMES:
            yield "extreme", "func", ast.Name(EXTREMES[name], ast.Load())
