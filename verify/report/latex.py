"""The LaTeX fragments: `appendix/claims.tex` to `\\input` into any article, `appendix/appendix.tex` to compile alone.

The fragments need only `booktabs` and `graphicx`; every macro they define starts with `\\thv`, and is defined with
`\\providecommand`, so that an article can restyle it.
"""

from __future__ import annotations

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from verify.report.ledger import verdict_word

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
        if any(word.count(a) != word.count(b) for a, b in ("()", "{}", "[]")) or not word:
            continue
        if re.search(r"\^[^\^_()]*\^|_[^\^_()]*_", word):
            continue  # two powers or two indices in a row have no meaning in TeX: leave the word as text
        out += [escape(text[at : found.start()]), f"${formula(word)}$", escape(trailing)]
        at = found.end()
    return "".join([*out, escape(text[at:])])


def formula(word: str) -> str:
    """A formula in the plain notation of statements as LaTeX mathematics."""
    word = _scripts(word)
    word = word.replace("||", r"\Vert ").replace("|", r"\vert ").replace("<=", r"\le ").replace(">=", r"\ge ")
    word = re.sub(r"(?<![A-Za-z])(log|exp|max|min|sum)(?![A-Za-z])", lambda m: rf"\{m.group()} ", word)
    return word.replace("*", r"\cdot ").replace("%", r"\%").replace("#", r"\#").replace("&", r"\&")


def _scripts(word: str) -> str:
    """Powers and indices in braces: a parenthesis after ^ or _ is taken whole, a prime belongs to what it follows."""
    out, at = [], 0
    while at < len(word):
        mark = word[at]
        at += 1
        if mark not in "^_":
            out.append(mark)
            continue
        if at < len(word) and word[at] in "({":
            depth, end = 0, at
            while end < len(word):
                depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(word[end], 0)
                end += 1
                if depth == 0:
                    break
            script, at = _scripts(word[at + 1 : end - 1]), end
        else:
            found = re.match(r"-?[A-Za-z0-9]+'*|'+|.", word[at:])
            script = found.group() if found else ""
            at += len(script)
        primes = len(script) - len(script.rstrip("'"))
        out.append(f"{mark}{{{script.rstrip(chr(39))}{chr(92) + 'prime ' if primes else ''}}}")
    return "".join(out)


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
    environment.globals.update(word=verdict_word)
    return {
        f"appendix/{name}": environment.get_template(name).render(ledger=ledger)
        for name in ("claims.tex", "tables.tex", "appendix.tex")
    }
