"""The matrices of a refutation's evidence, set as mathematics: MathML for the pages, arrays for LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from verify.report.notation import tex_text

MOST_MATRICES, MOST_ROWS, MOST_COLUMNS = 8, 12, 10
"""What is shown of an evidence file's matrices; the file has all of them."""


def matrices_html(verdict: dict[str, Any]) -> list[Markup]:
    """The matrices of a refutation's evidence, as MathML."""
    if verdict["status"] != "refuted":
        return []
    return [Markup(_mathml(name, rows)) for name, rows in matrices_in(verdict["evidence"])[:MOST_MATRICES]]


def matrices_in(evidence: Any, name: str = "") -> list[tuple[str, list[list[str]]]]:
    """Every matrix of numbers in an evidence document, small enough to be shown, with its name."""
    if isinstance(evidence, dict):
        return [found for key, value in evidence.items() for found in matrices_in(value, str(key))]
    if not isinstance(evidence, list) or not evidence:
        return []
    rows = evidence
    if all(isinstance(row, list) and row and all(_is_number(x) for x in row) for row in rows):
        if len({len(row) for row in rows}) == 1 and len(rows) <= MOST_ROWS and len(rows[0]) <= MOST_COLUMNS:
            return [(name, [[str(x) for x in row] for row in rows])]
        return []
    return [found for value in rows if isinstance(value, dict | list) for found in matrices_in(value, name)]


def _is_number(x: Any) -> bool:
    return (isinstance(x, int) and not isinstance(x, bool)) or (
        isinstance(x, str) and re.fullmatch(r"-?\d+(?:/\d+)?", x) is not None
    )


def _mathml(name: str, rows: Sequence[Sequence[str]]) -> str:
    body = "".join("<mtr>" + "".join(f"<mtd>{_entry(x)}</mtd>" for x in row) + "</mtr>" for row in rows)
    return (
        f'<math display="inline"><mrow>{_name(name)}<mo>=</mo><mo>(</mo><mtable>{body}</mtable><mo>)</mo></mrow></math>'
    )


def _name(name: str) -> str:
    """`WQ` as W with an index; any other name as text."""
    if re.fullmatch(r"W[QKV]", name):
        return f"<msub><mi>W</mi><mi>{name[1]}</mi></msub>"
    return f"<mi>{name}</mi>" if len(name) == 1 else f"<mtext>{escape(name)}</mtext>"


def _entry(x: str) -> str:
    sign, digits = ("<mo>−</mo>", x[1:]) if x.startswith("-") else ("", x)
    p, _, q = digits.partition("/")
    number = f"<mfrac><mn>{p}</mn><mn>{q}</mn></mfrac>" if q else f"<mn>{p}</mn>"
    return f"<mrow>{sign}{number}</mrow>" if sign else number


def matrices_tex(verdict: dict[str, Any]) -> list[str]:
    """The same as LaTeX formulas that need no package."""
    if verdict["status"] != "refuted":
        return []
    return [_array(name, rows) for name, rows in matrices_in(verdict["evidence"])[:MOST_MATRICES]]


def _array(name: str, rows: Sequence[Sequence[str]]) -> str:
    symbol = (
        f"W^{name[1]}" if re.fullmatch(r"W[QKV]", name) else name if len(name) == 1 else rf"\mbox{{{tex_text(name)}}}"
    )
    body = r"\\".join("&".join(row) for row in rows)
    columns = "r" * len(rows[0])
    return rf"{symbol}=\left(\begin{{array}}{{{columns}}}{body}\end{{array}}\right)"
