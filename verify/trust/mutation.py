"""Seeded faults: every way of changing one operator, comparison, constant, sign or extreme in the constructions of a proofs module.

What counts as construction is read off the source: functions marked with `part_of`, and the functions of the same module that they
name, directly or through each other; in a module without checks, every function. Checks, tables and figures are not among them;
neither are annotations, decorators, docstrings and the texts of errors. Nothing is chosen by hand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
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
    """One changed place: `number` counts the places of the module, `after` what stands there instead."""

    module: str
    number: int
    function: str
    line: int
    kind: str
    before: str
    after: str
    original: str
    """The whole module without the change."""

    @property
    def source(self) -> str:
        """The whole module with the change."""
        tree = ast.parse(self.original)
        fault = next(islice(_faults(tree), self.number, None))
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


def _faults(tree: ast.Module) -> Iterator[_Fault]:
    for function in constructions(tree):
        for node in _places(function):
            for kind, field, value in _changes(node):
                yield _Fault(function, node, kind, field, value)


def mutants(module: str, source: str) -> list[Mutant]:
    """All mutants of a module's constructions, in the order of the source."""
    found: list[Mutant] = []
    for fault in _faults(ast.parse(source)):
        node, kept = fault.node, getattr(fault.node, fault.field)
        before = ast.unparse(node)
        setattr(node, fault.field, fault.value)
        after = ast.unparse(ast.fix_missing_locations(node))
        setattr(node, fault.field, kept)
        line = getattr(node, "lineno", fault.function.lineno)
        found.append(Mutant(module, len(found), fault.function.name, line, fault.kind, before, after, source))
    return found


def constructions(tree: ast.Module) -> list[ast.FunctionDef]:
    """The module's functions that belong to constructions: see the module."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if not any(_is_check(node) for node in functions.values()):
        nested = _nested(tree)
        return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node not in nested]
    wanted = [name for name, node in functions.items() if any(_marked(inner) for inner in ast.walk(node))]
    reached: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in reached:
            reached.add(name)
            named = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)}
            wanted += [other for other in named & set(functions) if not _is_check(functions[other])]
    return [node for name, node in functions.items() if name in reached]


def _nested(tree: ast.Module) -> set[ast.AST]:
    """Functions inside functions: their changes are found with the outer one."""
    outer = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {
        inner for node in outer for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef) and inner is not node
    }


def _marked(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(_called(d) == "part_of" for d in node.decorator_list)


def _is_check(node: ast.FunctionDef) -> bool:
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
