"""The LaTeX fragments: `appendix/summary.tex`, `claims.tex`, `tables.tex`, `figures.tex` and
`accounts.tex` (or one `claim-ID.tex`) to `\\input` into any article, `appendix/appendix.tex` to compile alone.

The fragments need only `booktabs`, `longtable` and, for figures, `graphicx`; every macro they define starts with `\\thv`, and is defined with
`\\providecommand`, so that an article can restyle it. Lines fit a text width of 5.5 inches (NeurIPS) or more.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from verify.report.account import account_tex
from verify.report.counterexample import matrices_tex
from verify.report.figures import file_name
from verify.report.notation import tex_code, tex_text, to_tex

TEXT_WIDTH = 395
"""Points: 5.5 inches, with a little to spare."""

SIZES = (("small", 9.0, 5.0), ("footnotesize", 8.0, 4.0), ("footnotesize", 8.0, 3.0), ("scriptsize", 7.0, 2.5))
"""What a table is set in: font size by name and in points, and half the space between columns; the first that fits."""

CHARACTER = 0.54
"""Width of an average character of tables, as a share of the font size."""

HEADERS = (14, 7)
"""Characters of a header line, if the cells are not longer; the first that fits."""

PARAGRAPH = 36
"""Characters: longer cells are set in lines of this length."""

LONG = 40
"""Rows from which a table may break across pages."""


@dataclass(frozen=True)
class Column:
    """A column as it is set: its number in the table, header lines, alignment (r, l, or p for lines), and width in characters."""

    index: int
    header: tuple[str, ...]
    alignment: str
    width: int


@dataclass(frozen=True)
class Layout:
    """One tabular: its size, the space between columns, and its columns. A table that is too wide has several."""

    size: str
    points: float
    gap: float
    columns: tuple[Column, ...]

    @property
    def specification(self) -> str:
        """The argument of `tabular`."""
        columns = (
            f"p{{{column.width * CHARACTER * self.points:.1f}pt}}" if column.alignment == "p" else column.alignment
            for column in self.columns
        )
        return f"@{{}}{''.join(columns)}@{{}}"


def layouts(table: dict[str, Any]) -> list[Layout]:
    """How a table fits the text width: in the largest size that does, or cut into several with the first column repeated."""
    for size, points, gap in SIZES:
        for least in HEADERS:
            columns = [_column(table, c, least) for c in range(len(table["headers"]))]
            if _width(columns, points, gap) <= TEXT_WIDTH:
                return [Layout(size, points, gap, tuple(columns))]
    size, points, gap = SIZES[1]
    parts, current = [], columns[:1]
    for column in columns[1:]:
        if len(current) > 1 and _width([*current, column], points, gap) > TEXT_WIDTH:
            parts.append(Layout(size, points, gap, tuple(current)))
            current = columns[:1]
        current.append(column)
    return [*parts, Layout(size, points, gap, tuple(current))]


def _width(columns: Sequence[Column], points: float, gap: float) -> float:
    return sum(column.width for column in columns) * CHARACTER * points + 2 * gap * (len(columns) - 1)


def _column(table: dict[str, Any], c: int, least: int) -> Column:
    cells = [row[c] for row in table["rows"]]
    widest = max((len(cell) for cell in cells), default=0)
    header = _lines(table["headers"][c], max(widest, least))
    if widest > PARAGRAPH:
        return Column(c, _lines(table["headers"][c], PARAGRAPH), "p", PARAGRAPH)
    numeric = sum(cell[:1].isdigit() or cell[:1] in "-–" for cell in cells)
    return Column(c, header, "r" if 2 * numeric >= len(cells) else "l", max(widest, *map(len, header)))


def _lines(text: str, width: int) -> tuple[str, ...]:
    """A header in lines of about this many characters, broken at spaces outside brackets."""
    lines: list[str] = []
    for word in re.findall(r"(?:[^\s(]|\([^)]*\))+", text):
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return tuple(lines) or ("",)


def cell(text: str) -> str:
    """A table cell: at the start of a row, a bracket or a star would be read as an option of the row before."""
    written = to_tex(text)
    return f"{{}}{written}" if written.startswith(("[", "*")) else written


def fragment_name(claim: str) -> str:
    """The fragment of one claim."""
    return f"claim-{re.sub(r'[^A-Za-z0-9.]+', '-', claim)}.tex"


def render_latex(ledger: dict[str, Any]) -> dict[str, str]:
    """The fragments by file name."""
    environment = Environment(
        loader=PackageLoader("verify.report"),
        undefined=StrictUndefined,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters.update(
        prose=to_tex,
        cell=cell,
        tex=tex_text,
        code=tex_code,
        quoted=shlex.quote,
        account=account_tex,
        matrices=matrices_tex,
    )
    accounts = {claim["module"]: claim["account"] for claim in ledger["claims"] if claim["account"]}
    fragments = {
        f"appendix/{fragment_name(claim['id'])}": environment.get_template("claim.tex").render(claim=claim)
        for claim in ledger["claims"]
    }
    return fragments | {
        f"appendix/{name}": environment.get_template(name).render(
            ledger=ledger, layouts=layouts, LONG=LONG, file_name=file_name, accounts=accounts
        )
        for name in ("summary.tex", "claims.tex", "tables.tex", "figures.tex", "accounts.tex", "appendix.tex")
    }
