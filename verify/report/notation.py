"""The plain notation of statements (`2^-N`, `a_ij`, `M >= 2`, `ceil(N/M)^2`), read once and set as LaTeX or HTML.

Statements, details and table cells are plain text that reads well on a terminal. Here the formulas in it are found:

    formula := term (operator term)*          with = < <= > >= + - * / -> between terms
    term    := factor factor*                 without space between them: 2N, E(s), c^2(r/2)
    factor  := (number | letter | Greek name | name with an index | (list) | [list] | |formula| | ||formula||) primes scripts

A formula is set as mathematics where it has an operator, a script, brackets or a letter that is no English word; all else
stays text, character by character. Reading never fails: what is no formula is text.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TypeAlias

GREEK = {
    "alpha": "α",
    "beta": "β",
    "delta": "δ",
    "eps": "ε",
    "epsilon": "ε",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "phi": "φ",
    "psi": "ψ",
    "Psi": "Ψ",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "Omega": "Ω",
    "Theta": "Θ",
}
FUNCTIONS = ("ceil", "exp", "floor", "log", "log2", "max", "min", "polylog", "sqrt", "sum")
OPERATORS = {
    "<=": (r"\le ", "≤"),
    ">=": (r"\ge ", "≥"),
    "->": (r"\to ", "→"),
    "!=": (r"\ne ", "≠"),
    "=": ("=", "="),
    "<": ("<", "&lt;"),
    ">": (">", "&gt;"),
    "+": ("+", "+"),
    "-": ("-", "−"),
    "*": (r"\cdot ", "·"),
    "/": ("/", "/"),
    "x": (r"\times ", "×"),
}
LONGEST_BRACKET = 60
"""Characters: a longer bracket is text, so that lines can break in it."""


# --- what formulas are made of -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Symbol:
    """A number, a letter, a Greek letter, a function or a name of several letters."""

    text: str


@dataclass(frozen=True)
class Operator:
    """A sign between terms, or in front of one; `spaced` as it was written."""

    sign: str
    spaced: bool = False


@dataclass(frozen=True)
class Group:
    """A bracket with what stands in it."""

    opening: str
    inside: Formula
    closing: str


@dataclass(frozen=True)
class Scripted:
    """A factor with primes, an index and a power."""

    base: Symbol | Group
    primes: int
    below: Formula
    above: Formula


@dataclass(frozen=True)
class Separator:
    """A comma, a semicolon or a space between terms of a list."""

    text: str


Part: TypeAlias = "Symbol | Operator | Group | Scripted | Separator"
Formula: TypeAlias = "tuple[Part, ...]"


@dataclass(frozen=True)
class Text:
    """Words that are no formula."""

    text: str


@dataclass(frozen=True)
class Code:
    """A name or command of the toolkit."""

    text: str


@dataclass(frozen=True)
class Mathematics:
    """A formula, and how it was written."""

    formula: Formula
    source: str


Piece: TypeAlias = "Text | Code | Mathematics"

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NAME = re.compile(r"[A-Za-z]+")
_WORD = re.compile(r"[A-Za-z0-9]+(?:['’][a-z]+)?")
_CODE = re.compile(r"`([^`]+)`|[A-Za-z]{2,}(?:_[A-Za-z]{2,})+\b|--[a-z][a-z-]+")
_OPERATOR = re.compile(r"(\s*)(<=|>=|->|!=|[=<>+*/-]|(?<=\s)x(?=\s))(\s*)")
_CLOSING = {"(": ")", "[": "]"}


class _Reader:
    """Reads one formula at a place of a text, or nothing."""

    def __init__(self, text: str) -> None:
        self.text = text

    def formula(self, at: int) -> tuple[Formula, int] | None:
        """The longest formula from here on, and where it ends."""
        parts: list[Part] = []
        if self.text[at : at + 1] == "-" and (at == 0 or not self.text[at - 1].isalnum()):
            parts.append(Operator("-"))
            at += 1
        term = self.term(at)
        if term is None:
            return None
        parts += term[0]
        at = term[1]
        while found := _OPERATOR.match(self.text, at):
            spaced = bool(found.group(1)) and bool(found.group(3))
            if bool(found.group(1)) != bool(found.group(3)) and found.group(2) not in ("=", "<=", ">="):
                break
            start, sign = found.end(), []
            if spaced and self.text[start : start + 1] == "-":
                start, sign = start + 1, [Operator("-")]
            term = self.term(start)
            if term is None:
                break
            parts += [Operator(found.group(2), spaced), *sign, *term[0]]
            at = term[1]
        return tuple(parts), at

    def term(self, at: int) -> tuple[list[Part], int] | None:
        """Factors without space between them."""
        factors: list[Part] = []
        while True:
            if factors and self.text[at : at + 1] == "!" and self.text[at : at + 2] != "!=":
                factors.append(Symbol("!"))
                at += 1
                continue
            found = self.factor(at, first=not factors)
            if found is None:
                return (factors, at) if factors else None
            if factors and factors[-1] in (Symbol("ceil"), Symbol("floor")):
                factors[-1:] = [_rounded(factors[-1].text, found[0])]
            else:
                factors.append(found[0])
            at = found[1]

    def factor(self, at: int, *, first: bool) -> tuple[Symbol | Group | Scripted, int] | None:
        """One factor with its scripts."""
        base = self.base(at, first=first)
        if base is None:
            return None
        symbol, at = base
        primes = 0
        while self.text[at : at + 1] == "'" and not self.text[at + 1 : at + 2].islower():
            primes, at = primes + 1, at + 1
        below: Formula = ()
        above: Formula = ()
        while self.text[at : at + 1] in ("^", "_"):
            script = self.script(at + 1, power=self.text[at] == "^")
            if script is None or (above if self.text[at] == "^" else below):
                break
            if self.text[at] == "^":
                above = script[0]
            else:
                below = script[0]
            at = script[1]
            while self.text[at : at + 1] == "'" and not self.text[at + 1 : at + 2].islower():
                primes, at = primes + 1, at + 1
        return (Scripted(symbol, primes, below, above) if primes or below or above else symbol), at

    def base(self, at: int, *, first: bool) -> tuple[Symbol | Group, int] | None:
        text = self.text
        if text[at : at + 1] in _CLOSING:
            return self.group(at)
        if text[at : at + 1] in ("|", "<"):
            return self.delimited(at)
        if number := _NUMBER.match(text, at):
            after = text[number.end() : number.end() + 2]
            if first and at and (text[at - 1].isalnum() or text[at - 1] == "."):
                return None
            if re.match(r"[A-Za-z]{2}|\.\d", after) and not self.inside:
                return None  # part of a word
            return Symbol(number.group()), number.end()
        name = _NAME.match(text, at)
        if name is None or (first and at and (text[at - 1].isalnum() or text[at - 1] in "_.")):
            return None
        word, end = name.group(), name.end()
        if word == "log" and text[end : end + 1] == "2":
            word, end = "log2", end + 1
        after = text[end : end + 1]
        if word in FUNCTIONS:
            argument = after == "_" or (after == "(" and self.group(end)) or (self.inside and after in (" ", "^"))
            return (Symbol(word), end) if argument else None
        if _CODE.match(text, at):
            return None
        if word in GREEK:
            return Symbol(word), end
        if len(word) == 1:
            if after.isdigit() or (after == "." and text[end + 1 : end + 2].isdigit()):
                return None  # R2, B.1
            return Symbol(word), end
        if after in ("_", "^") or (after == "'" and len(word) == 2 and word.isupper()):
            return Symbol(word), end
        return (Symbol(word), end) if self.inside and len(word) == 2 and word[1].isupper() else None

    inside = 0
    """How many brackets are open: products such as HL and dN are recognised in brackets only."""

    def group(self, at: int) -> tuple[Group, int] | None:
        """A bracket all of which is formulas, with commas or spaces between them."""
        opening, closing, start = self.text[at], _CLOSING[self.text[at]], at
        parts: list[Part] = []
        at += 1
        self.inside += 1
        try:
            while True:
                found = self.formula(at)
                if found is None:
                    if self.text.startswith("...", at):
                        found = (Symbol("..."),), at + 3
                    else:
                        return None
                parts += found[0]
                at = found[1]
                if self.text[at : at + 1] == closing:
                    at += 1
                    return (Group(opening, tuple(parts), closing), at) if at - start <= LONGEST_BRACKET else None
                separator = re.compile(r"[,;]? ?").match(self.text, at)
                assert separator is not None
                if not separator.group():
                    return None
                parts.append(Separator(separator.group()))
                at = separator.end()
        finally:
            self.inside -= 1

    def delimited(self, at: int) -> tuple[Group, int] | None:
        """A norm, an absolute value, or a scalar product <a,b>."""
        opening = "||" if self.text.startswith("||", at) else self.text[at]
        closing = ">" if opening == "<" else opening
        stop = self.text.find(closing, at + len(opening))
        if stop < 0 or stop - at > LONGEST_BRACKET:
            return None
        inner = _Reader(self.text[at + len(opening) : stop])
        parts: list[Part] = []
        start = 0
        while start < len(inner.text):
            found = inner.formula(start)
            if found is None:
                return None
            parts += found[0]
            start = found[1]
            separator = re.compile(r"[,.]? ?").match(inner.text, start)
            assert separator is not None
            if separator.group():
                parts.append(Separator(separator.group()))
            elif start < len(inner.text):
                return None
            start = separator.end()
        if opening == "<" and not any(isinstance(part, Separator) for part in parts):
            return None
        return (Group(opening, tuple(parts), closing), stop + len(closing)) if parts else None

    def script(self, at: int, *, power: bool) -> tuple[Formula, int] | None:
        """What stands after ^ or _: a bracket without its parentheses, or a signed number or name."""
        if self.text[at : at + 1] == "(":
            found = self.group(at)
            return None if found is None else (found[0].inside, found[1])
        sign: Formula = ()
        if power and self.text[at : at + 1] == "-":
            sign, at = (Operator("-"),), at + 1
        word = re.compile(r"\d+|[A-Za-z]+" if power else r"[A-Za-z0-9]+").match(self.text, at)
        if word is None:
            return None
        at = word.end()
        below: Formula = (*sign, Symbol(word.group()))
        if word.group() in GREEK and self.text[at : at + 1] == "(" and (argument := self.group(at)):
            return (*below, argument[0]), argument[1]
        return below, at


def _rounded(how: str, argument: Symbol | Group | Scripted) -> Group | Scripted:
    """ceil(x) and floor(x) as brackets."""
    match argument:
        case Scripted(base, primes, below, above):
            return Scripted(_bracket(how, base), primes, below, above)
        case _:
            return _bracket(how, argument)


def _bracket(how: str, argument: Symbol | Group) -> Group:
    return Group(how, argument.inside if isinstance(argument, Group) else (argument,), how)


def _is_mathematics(formula: Formula) -> bool:
    """Whether a formula is worth setting: plain numbers and the words "a", "A" and "I" are text."""
    if len(formula) == 1 and isinstance(formula[0], Symbol):
        text = formula[0].text
        return text in GREEK or (len(text) == 1 and text.isalpha() and text not in "aAI")
    if len(formula) == 1 and isinstance(formula[0], Group):
        return any(not isinstance(part, Symbol) or _is_mathematics((part,)) for part in formula[0].inside)
    return True


def read(text: str) -> list[Piece]:
    """The text in pieces: words, code and formulas, in order."""
    pieces: list[Piece] = []
    plain: list[str] = []

    def flush() -> None:
        if plain:
            pieces.append(Text("".join(plain)))
            plain.clear()

    at = 0
    while at < len(text):
        if (code := _CODE.match(text, at)) and (at == 0 or not text[at - 1].isalnum()):
            flush()
            pieces.append(Code(code.group(1) or code.group()))
            at = code.end()
            continue
        found = _Reader(text).formula(at)
        if found is not None and _is_mathematics(found[0]) and not text[found[1] : found[1] + 1].isalnum():
            flush()
            pieces.append(Mathematics(found[0], text[at : found[1]]))
            at = found[1]
            continue
        word = _WORD.match(text, at)
        end = word.end() if word else at + 1
        plain.append(text[at:end])
        at = end
    flush()
    return pieces


SHORT = 28
"""Characters up to which a formula stays on one line of a page; half as many in print."""


# --- LaTeX -------------------------------------------------------------------------------------------------------------

_TEX = {
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
    "`": r"\textasciigrave{}",
}
_TEX_GREEK = {"eps": r"\varepsilon ", "epsilon": r"\varepsilon ", "phi": r"\varphi "}
_TEX_FUNCTIONS = {name: rf"\mathrm{{{name}}}" for name in ("ceil", "floor", "polylog", "sqrt")} | {"log2": r"\log_2 "}
_TEX_BRACKETS = {
    "||": (r"\Vert ", r"\Vert "),
    "|": (r"\vert ", r"\vert "),
    "<": (r"\langle ", r"\rangle "),
    "ceil": (r"\lceil ", r"\rceil "),
    "floor": (r"\lfloor ", r"\rfloor "),
}
_TEX_SIGNS = {sign: f"${written.strip()}$" for sign, (written, _) in OPERATORS.items() if len(sign) == 2} | {
    "||": r"$\Vert$",
    "|": r"$\vert$",
}
_HTML_BRACKETS = {"||": ("‖", "‖"), "<": ("⟨", "⟩"), "ceil": ("⌈", "⌉"), "floor": ("⌊", "⌋")}
_SIGN = re.compile(r"(<=|>=|->|!=|\|\||\|)")


def tex_text(text: str) -> str:
    """Plain text as LaTeX text; what is neither ASCII nor Latin-1 becomes a question mark."""
    return "".join(_TEX.get(c, c) for c in text.encode("latin-1", "replace").decode("latin-1"))


def tex_code(text: str) -> str:
    """Names and commands, breakable after punctuation."""
    broken = re.sub(r"([/,.=-])(?=\S)", r"\1\\allowbreak{}", tex_text(text))
    # Old encodings take these signs from other fonts, which have none to match a typewriter's.
    for name, sign in (("less", "<"), ("greater", ">"), ("bar", "|")):
        broken = broken.replace(rf"\text{name}{{}}", f"${sign}$")
    for brace, code in ((r"\{", "7B"), (r"\}", "7D"), (r"\textbackslash{}", "5C")):
        broken = broken.replace(brace, rf'\char"{code}{{}}')
    return r"\texttt{" + broken.replace(r"\_", r"\_\allowbreak{}") + "}"


def to_tex(text: str) -> str:
    """The text as LaTeX, formulas in mathematics."""
    out = []
    for piece in read(text):
        match piece:
            case Text(words):
                for part in _SIGN.split(words):
                    out.append(_TEX_SIGNS.get(part) or re.sub(r"(?<=\w)/(?=\w)", r"/\\allowbreak{}", tex_text(part)))
            case Code(code):
                out.append(tex_code(code))
            case Mathematics(formula, source):
                written = _tex(formula)
                if len(source) > SHORT // 2:  # TeX breaks formulas at relations and sums only
                    written = written.replace("/", r"/\penalty600 ").replace(r"\ ", r"\ \penalty300 ")
                out.append(f"${written}$")
    return "".join(out)


def _tex(formula: Formula) -> str:
    return "".join(_tex_part(part) for part in formula)


def _tex_part(part: Part) -> str:
    match part:
        case Symbol(text):
            if text in GREEK:
                return _TEX_GREEK.get(text, rf"\{text} ")
            if text in FUNCTIONS:
                return _TEX_FUNCTIONS.get(text, rf"\{text} ")
            if text == "...":
                return r"\ldots "
            return rf"\mathit{{{text}}}" if len(text) > 2 and text.isalpha() else text
        case Operator(sign):
            return OPERATORS[sign][0]
        case Group(opening, inside, closing):
            left, right = _TEX_BRACKETS.get(opening, (opening, closing))
            return left + _tex(inside) + right
        case Scripted(base, primes, below, above):
            raised = _tex(above) + r"\prime" * primes
            out = _tex_part(base)
            out += f"_{{{_tex(below)}}}" if below else ""
            return out + (f"^{{{raised}}}" if raised else "")
        case Separator(text):
            return r"\ " if not text.strip() else text


# --- HTML --------------------------------------------------------------------------------------------------------------


def to_html(text: str) -> str:
    """The text as HTML, formulas with <i>, <sub> and <sup>."""
    out = []
    for piece in read(text):
        match piece:
            case Text(words):
                for part in _SIGN.split(words):
                    out.append(OPERATORS[part][1] if part in OPERATORS else html.escape(part.replace("||", "‖")))
            case Code(code):
                out.append(f"<code>{html.escape(code)}</code>")
            case Mathematics(formula, source):
                kind = ' class="m"' if len(source) <= SHORT else ""
                out.append(f"<span{kind}>{_html(formula)}</span>")
    return "".join(out)


def _html(formula: Formula) -> str:
    return "".join(_html_part(part) for part in formula)


def _html_part(part: Part) -> str:
    match part:
        case Symbol(text):
            if text in GREEK:
                return f"<i>{GREEK[text]}</i>"
            if text == "log2":
                return "log<sub>2</sub>"
            if text == "...":
                return "…"
            return html.escape(text) if text in FUNCTIONS or not text[0].isalpha() else f"<i>{html.escape(text)}</i>"
        case Operator(sign, spaced):
            written = OPERATORS[sign][1]
            return f" {written} " if spaced else written
        case Group(opening, inside, closing):
            left, right = _HTML_BRACKETS.get(opening, (opening, closing))
            return left + _html(inside) + right
        case Scripted(base, primes, below, above):
            out = _html_part(base)
            out += f"<sub>{_html(below)}</sub>" if below else ""
            out += f"<sup>{_html(above)}</sup>" if above else ""
            return out + "′" * primes
        case Separator(text):
            return text
