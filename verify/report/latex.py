"""The LaTeX fragments: `appendix/claims.tex` to `\\input` into any article, `appendix/appendix.tex` to compile alone.

The fragments need only `booktabs` and `longtable`; every macro they define starts with `\\thv`, and is defined with
`\\providecommand`, so that an article can restyle it.
"""

from __future__ import annotations

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}

_FORMULA = re.compile(r"[^\s;,:\"]*[\^_][^\s;,:\"]*|[^\s;,:\"]*(?:<=|>=)[^\s;,:\"]*")
"""A word with a power, an index or an inequality in it is set as mathematics."""


def escape(text: str) -> str:
    """Plain text as LaTeX text."""
    return "".join(_SPECIAL.get(c, c) for c in text)


def breakable(text: str) -> str:
    """Escaped text in which long words may break after punctuation, for narrow table cells and paths."""
    return re.sub(r"([/,.=_-])(?=\S)", r"\1\\allowbreak{}", escape(text).replace(r"\_", r"\_\allowbreak{}"))


def prose(text: str) -> str:
    """Plain text as LaTeX, words that are formulas (`2^-N`, `a_ij`, `M >= 2`) set as mathematics."""
    out, at = [], 0
    for found in _FORMULA.finditer(text):
        word = found.group()
        trailing = word[len(word.rstrip(".?!")) :]
        word = word[: len(word) - len(trailing)]
        while word.count(")") > word.count("("):
            if not word.endswith(")"):
                break
            word, trailing = word[:-1], ")" + trailing
        if word.count("(") != word.count(")") or not word:
            continue
        out += [escape(text[at : found.start()]), f"${formula(word)}$", escape(trailing)]
        at = found.end()
    return "".join([*out, escape(text[at:])])


def formula(word: str) -> str:
    """A formula in the plain notation of statements as LaTeX mathematics."""
    word = re.sub(r"([\^_])\(([^()]*)\)", r"\1{\2}", word)
    word = re.sub(r"([\^_])(-?[A-Za-z0-9]+)", r"\1{\2}", word)
    word = word.replace("||", r"\Vert ").replace("|", r"\vert ").replace("<=", r"\le ").replace(">=", r"\ge ")
    word = re.sub(r"\b(log|exp|max|min|sum)\b", lambda m: rf"\{m.group()} ", word)
    return word.replace("*", r"\cdot ").replace("%", r"\%").replace("#", r"\#").replace("&", r"\&")


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
    environment.filters.update(prose=prose, tex=escape, breakable=breakable)
    return {
        f"appendix/{name}": environment.get_template(name).render(ledger=ledger)
        for name in ("claims.tex", "tables.tex", "appendix.tex")
    }
