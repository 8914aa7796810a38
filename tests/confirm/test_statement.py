"""Statements: true ones hold, false ones do not, open ones are not confirmed; each operation against plain Python."""

from __future__ import annotations

import ast
import json
import sys
from fractions import Fraction
from math import comb, factorial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import verify.confirm
from tests.confirm.files import evidence, holds
from tests.independent import head_exp2
from verify.confirm import Refused, confirm

OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
numbers = st.fractions(-50, 50, max_denominator=60)


def verdict(*statements: Any, **members: Any) -> bool:
    return confirm(evidence(*statements, **members)).confirmed


def exactly(expression: Any, value: Fraction | int) -> None:
    """The expression is this number, and no other one."""
    assert verdict(holds("==", expression, str(value)))
    for other in ("==", value + Fraction(1, 10**40)), ("<", value), (">", value), ("!=", value):
        assert not verdict(holds(other[0], expression, str(other[1])))


@settings(max_examples=60)
@given(numbers, numbers, numbers, st.integers(-5, 5))
def test_rational_operations(x: Fraction, y: Fraction, z: Fraction, n: int) -> None:
    a, b, c = str(x), str(y), str(z)
    exactly(["+", a, b, c], x + y + z)
    exactly(["-", a, b, c], x - y - z)
    exactly(["*", a, b, c], x * y * z)
    exactly(["min", a, b, c], min(x, y, z))
    exactly(["max", a, b, c], max(x, y, z))
    exactly(["abs", a], abs(x))
    exactly(["floor", a], x.__floor__())
    exactly(["ceil", a], x.__ceil__())
    exactly(["count", a, b, c, 0], sum(bool(k) for k in (x, y, z)))
    exactly(["sqrt", str(x * x)], abs(x))
    exactly(["exp2", n], Fraction(2) ** n)
    exactly(["log2", str(Fraction(2) ** n)], n)
    if x:
        exactly(["^", a, n], x**n)
        exactly(["/", b, a], y / x)


@given(st.integers(0, 60), st.integers(0, 60))
def test_counting(n: int, k: int) -> None:
    exactly(["binomial", n, k], comb(n, k))
    exactly(["factorial", n], factorial(n))


@pytest.mark.parametrize(
    "relation",
    [
        ["<", ["exp", 1], "2718281828459045235360287471352662498/1000000000000000000000000000000000000"],
        [">", ["exp", 1], "2718281828459045235360287471352662497/1000000000000000000000000000000000000"],
        ["<", ["log", 2], ["/", 70, 100]],
        [">", ["log2", 3], ["/", 158, 100]],
        ["<", ["exp2", "1/2"], ["+", ["sqrt", 2], ["^", "1/2", 200]]],
        ["!=", ["exp", "1/1000"], "1001/1000"],
        ["<=", ["exp", 0], 1],
        ["<", ["exp", -60000], ["^", 2, -60000]],
    ],
)
def test_irrational_operations(relation: list[Any]) -> None:
    assert verdict(holds(*relation))
    assert not verdict(holds(OPPOSITE[relation[0]], *relation[1:]))


def test_what_stays_open_is_not_confirmed() -> None:
    """sqrt(2)^2 = 2 is true, but no enclosure shows it."""
    finding = confirm(evidence(holds("==", ["*", ["sqrt", 2], ["sqrt", 2]], 2)))
    assert not finding.confirmed and "stays open" in finding.lines[0]
    assert not verdict(holds("!=", ["*", ["sqrt", 2], ["sqrt", 2]], 2))
    assert not verdict(holds("==", ["/", 1, 0], ["/", 1, 0])) and not verdict(holds("<", ["log", 0], 1))


def test_one_false_statement_among_true_ones_and_none_at_all() -> None:
    true, false = holds("<", 1, 2), holds("<", 2, 1)
    assert verdict(true, true) and not verdict(true, false, true) and not verdict()
    assert "nothing here can be recomputed" in confirm(evidence()).lines[0]


def table(rows: Any, relation: Any, columns: Any = ("N", "calls")) -> dict[str, Any]:
    return {"kind": "table", "means": "m", "columns": list(columns), "rows": rows, "relation": relation}


def test_a_table_holds_in_every_row_or_not() -> None:
    relation = ["==", "calls", ["^", "N", 2]]
    assert verdict(table([[1, 1], [2, 4], ["3/2", "9/4"]], relation))
    assert not verdict(table([[1, 1], [2, 5], [3, 9]], relation))
    assert not verdict(table([[1, 1], [2, 4]], ["==", "calls", ["^", ["*", ["sqrt", "N"], ["sqrt", "N"]], 2]]))


@pytest.mark.parametrize(
    "statement",
    [
        7,
        {"kind": "relation", "relation": ["<", 1, 2]},
        {"kind": "other", "means": "m"},
        {"kind": ["relation"], "means": "m", "relation": ["<", 1, 2]},
        {"kind": "relation", "means": "m", "relation": ["<", 1, 2], "more": 1},
        holds("<>", 1, 2),
        holds("<", 1),
        holds("<", "N", 2),
        holds("<", 1, [2, 3]),
        holds("<", 1, []),
        holds("<", 1, ["system", 1]),
        holds("<", 1, ["+", 1]),
        holds("<", 1, ["sqrt", 1, 2]),
        holds("<", 1, ["^", 2, "1/2"]),
        holds("<", 1, ["^", 2, ["sqrt", 2]]),
        holds("<", 1, ["^", ["^", 2, 65536], 65536]),
        holds("<", 1, ["factorial", 10**6]),
        holds("<", 1, ["binomial", 10**6, 2]),
        holds("<", 1, ["exp", 10**6]),
        holds("<", 1, {"x": 1}),
        holds("<", 1, None),
        holds("<", True, 2),
        table([], ["<", "N", 1]),
        table([[1]], ["<", "N", 1]),
        table([[1, 2]], ["<", "N", 1], ("N", "1")),
        table([[1, None]], ["<", "N", 1]),
    ],
    ids=lambda s: json.dumps(s)[:60],
)
def test_statements_of_another_form_are_refused(statement: Any) -> None:
    with pytest.raises(Refused, match="statement 0: "):
        confirm(evidence(statement))


# --- evaluations -------------------------------------------------------------------------------------------------------

MASKS: list[tuple[Any, Any]] = [
    ("none", lambda i, j: True),
    ("causal", lambda i, j: j <= i),
    ({"window": 2}, lambda i, j: i - 2 < j <= i),
    ({"window": 1, "sinks": 2}, lambda i, j: j <= i and (j > i - 1 or j < 2)),
]


def evaluation(X: Any, W: Any, mask: Any, output: Any, relation: Any = "equal", kernel: str = "exp2") -> dict[str, Any]:
    head = {name: [[str(x) for x in row] for row in rows] for name, rows in zip(("WQ", "WK", "WV"), W, strict=True)}
    instance = {"kernel": kernel, "mask": mask, "X": [[str(x) for x in r] for r in X], "layers": [[head]]}
    rows = [[str(x) for x in row] for row in output]
    return {"kind": "evaluation", "means": "m", "instance": instance, "output": rows, "relation": relation}


small = st.integers(-2, 2).map(Fraction)


@settings(max_examples=60)
@given(st.data(), st.integers(1, 5), st.integers(1, 2), st.sampled_from(MASKS))
def test_attention_against_plain_fractions(data: st.DataObject, n: int, d: int, mask: Any) -> None:
    def matrix(rows: int) -> list[list[Fraction]]:
        return [[data.draw(small) for _ in range(d)] for _ in range(rows)]

    X, W = matrix(n), [matrix(d) for _ in range(3)]
    output = head_exp2(X, *W, sees=mask[1])
    assert verdict(evaluation(X, W, mask[0], output))
    assert not verdict(evaluation(X, W, mask[0], output, "differs"))
    i, c = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, d - 1))
    wrong = [list(row) for row in output]
    wrong[i][c] += Fraction(1, 10**9)
    assert not verdict(evaluation(X, W, mask[0], wrong))
    assert verdict(evaluation(X, W, mask[0], wrong, "differs"))


def test_closeness_is_measured_row_by_row() -> None:
    one = [[[Fraction(1)]]] * 3
    X, off = [[Fraction(1)], [Fraction(0)]], Fraction(1, 2**20)
    e = Fraction(27182818284590452353602874713526624977572, 10**40)
    output = [[e / (e + 1)], [Fraction(1, 2)]]
    assert verdict(evaluation(X, one, "none", output, {"within": 100}, "exp"))
    output[1][0] += off
    assert verdict(evaluation(X, one, "none", output, {"within": 19}, "exp"))
    assert not verdict(evaluation(X, one, "none", output, {"within": 20}, "exp"))
    assert not verdict(evaluation(X, one, "none", output, "equal", "exp"))
    assert verdict(evaluation(X, one, "none", output, "differs", "exp"))


ONE = [[[1]]] * 3


@pytest.mark.parametrize(
    "statement",
    [
        evaluation([[1]], ONE, "none", [[1]], "same"),
        evaluation([[1]], ONE, "none", [[1]], {"within": 0}),
        evaluation([[1]], ONE, "none", [[1]], {"within": True}),
        evaluation([[1]], ONE, "future", [[1]]),
        evaluation([[1]], ONE, {"window": 0}, [[1]]),
        evaluation([[1]], ONE, {"window": True}, [[1]]),
        evaluation([[1]], ONE, "none", [[1]], kernel="exp3"),
        evaluation([["1/2"]], ONE, "none", [["1/2"]]),
        evaluation([[10**6]], ONE, "none", [[1]]),
        evaluation([[1], [1, 2]], ONE, "none", [[1]]),
        evaluation([[1]], ONE, "none", [[1], [1]]),
        evaluation([[1, 2]], ONE, "none", [[1, 2]]),
        evaluation([[1]] * 4000, ONE, "none", [[1]] * 4000),
    ],
    ids=lambda s: json.dumps(s)[:60],
)
def test_evaluations_of_another_form_are_refused(statement: Any) -> None:
    with pytest.raises(Refused):
        confirm(evidence(statement))


# --- independence ------------------------------------------------------------------------------------------------------


def test_the_checker_imports_the_standard_library_and_itself_only() -> None:
    folder = Path(verify.confirm.__file__).parent
    files = sorted(folder.glob("*.py"))
    assert len(files) == 6
    for file in files:
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names), file
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert str(node.module).split(".")[0] in sys.stdlib_module_names, file
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 1, f"{file} reaches out of its folder"
            elif isinstance(node, ast.Constant):
                assert not isinstance(node.value, float), f"{file} uses floating point"
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "float", "compile", "__import__"), file
    assert sum(len(file.read_text().splitlines()) for file in files) < 900, "to be read in one sitting"
