"""A module's own account of statement, construction and proof (its docstring), set as HTML or LaTeX.

Read as light markup: paragraphs between blank lines, lists (`* ` or `- `), indented formulas, **bold**, *emphasis*, `code`;
formulas in running text as in `verify.report.notation`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from markupsafe import Markup

from verify.report.notation import tex_code, to_html, to_tex

_EMPHASIS = re.compile(r"\*\*(?=\S)([^*]+?)(?<=\S)\*\*|(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=[^\s*])\*(?![\w*])")


@dataclass(frozen=True)
class Block:
    """A paragraph (one text), a list (a text for each item) or displayed lines (a text for each line)."""

    kind: str
    texts: tuple[str, ...]


def blocks(text: str) -> Iterator[Block]:
    """The blocks of an account, in order."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines):
            yield Block("display", tuple(line[4:] for line in lines))
        elif lines[0].startswith(("* ", "- ")):
            yield Block("list", tuple(" ".join(item.split()) for item in re.split(r"\n[*-] ", block[2:])))
        else:
            yield Block("paragraph", (" ".join(block.split()),))


def account_html(text: str) -> Markup:
    """The account as HTML."""
    out = []
    for block in blocks(text):
        match block.kind:
            case "display":
                out.append(f'<pre tabindex="0">{html.escape(chr(10).join(block.texts))}</pre>')
            case "list":
                items = "".join(f"<li>{_inline(item, to_html, '<{0}>{1}</{0}>')}</li>" for item in block.texts)
                out.append(f"<ul>{items}</ul>")
            case _:
                out.append(f"<p>{_inline(block.texts[0], to_html, '<{0}>{1}</{0}>')}</p>")
    return Markup("\n".join(out))


def account_tex(text: str) -> str:
    """The account as LaTeX paragraphs, without its headings' claim to be one: any `\\paragraph` may stand before it."""
    out = []
    for block in blocks(text):
        match block.kind:
            case "display":
                lines = r"\\".join(tex_code(line.strip()) for line in block.texts)
                out.append(f"\\begin{{quote}}\\footnotesize\\raggedright {lines}\\end{{quote}}")
            case "list":
                items = "\n".join(rf"\item {_inline(item, to_tex, TEX_EMPHASIS)}" for item in block.texts)
                out.append(f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}")
            case _:
                out.append(_inline(block.texts[0], to_tex, TEX_EMPHASIS))
    return "\n\n".join(out)


TEX_EMPHASIS = "\\thv{0}{{{1}}}"
"""`\\thvstrong{...}` and `\\thvem{...}`."""


def _inline(text: str, written: Callable[[str], str], emphasis: str) -> str:
    """One paragraph; what is bold or emphasised may hold formulas."""
    out, at = [], 0
    for found in _EMPHASIS.finditer(text):
        out.append(written(text[at : found.start()]))
        tag = "strong" if found.group(1) else "em"
        out.append(emphasis.format(tag, written(found.group(1) or found.group(2))))
        at = found.end()
    return "".join([*out, written(text[at:])])
