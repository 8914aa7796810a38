"""Formulas in plain text: what is mathematics, what stays text, and that nothing is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.report.notation import Code, Mathematics, Text, read, to_html, to_tex


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("2^-N", "$2^{-N}$"),
        ("a_ij", "$a_{ij}$"),
        ("(N/M)^2 calls", "$(N/M)^{2}$ calls"),
        ("M >= 2", r"$M\ge 2$"),
        ("R^d -> R^(d+1)", r"$R^{d}\to R^{d+1}$"),
        ("W^V'", r"$W^{V\prime}$"),
        ("H'L'", r"$H^{\prime}L^{\prime}$"),
        ("x_tau(i)", r"$x_{\tau (i)}$"),
        ("||b_ij|| <= c", r"$\Vert b_{ij}\Vert \le c$"),
        ("E(-c^2-(r/2)B^2)", r"$E(-c^{2}-(r/\penalty600 2)B^{2})$"),
        ("ceil(N/M)^2", r"$\lceil N/M\rceil ^{2}$"),
        ("<q_i,k_j>", r"$\langle q_{i},k_{j}\rangle $"),
        ("N x d", r"$N\times d$"),
        ("(M!)^(N/M)", "$(M!)^{N/M}$"),
        ("log2(N) bits", r"$\log_2 (N)$ bits"),
        ("1, 2, ..., 9", "1, 2, ..., 9"),
        ("Lemma B.1 and R2", "Lemma B.1 and R2"),
        ("a token, A head, I", "a token, A head, I"),
        ("kernels exp2 and exp", "kernels exp2 and exp"),
        ("Serfling's bound", "Serfling's bound"),
        ("row-wise and/or", r"row-wise and/\allowbreak{}or"),
        ("100% of {x} & #1", r"100\% of \{$x$\} \& \#1"),
        ("`carried_numbers`", r"\texttt{carried\_\allowbreak{}numbers}"),
        ("T = carried_numbers", r"$T$ = \texttt{carried\_\allowbreak{}numbers}"),
        ("some <= all", r"some $\le$ all"),
        ("(M", "($M$"),
        ("x^", r"$x$\textasciicircum{}"),
    ],
)
def test_latex(text: str, tex: str) -> None:
    assert to_tex(text) == tex


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("2^-N", '<span class="m">2<sup>−<i>N</i></sup></span>'),
        ("a_ij >= 1", '<span class="m"><i>a</i><sub><i>ij</i></sub> ≥ 1</span>'),
        ("<b>", '&lt;<span class="m"><i>b</i></span>&gt;'),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("H'", '<span class="m"><i>H</i>′</span>'),
        ("`a<b`", "<code>a&lt;b</code>"),
    ],
)
def test_html(text: str, page: str) -> None:
    assert to_html(text) == page


PIECES = st.sampled_from(
    ["N", "M", "a", "d'", "2", "10", "^", "_", "(", ")", "[", "]", "|", "||", "<", ">", "<=", "->", "-", "+", "/", "*"]
    + [
        " ",
        " ",
        "tau",
        "exp",
        "ceil",
        "log2",
        "word",
        "B.1",
        "it's",
        "`",
        "\\",
        "$",
        "{",
        "}",
        "!",
        "...",
        ",",
        "x",
        "é",
        "∞",
    ]
)


@settings(max_examples=600)
@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=40))
def test_nothing_is_lost_and_everything_is_balanced(text: str) -> None:
    pieces = read(text)
    written = ""
    for piece in pieces:
        match piece:
            case Text(words):
                written += words
            case Code(code):
                written += code
            case Mathematics(_, source):
                written += source
    assert written.replace("`", "") == text.replace("`", "")
    tex = to_tex(text)
    plain = tex.replace("\\\\", "").replace(r"\{", "").replace(r"\}", "").replace(r"\$", "")
    assert plain.count("$") % 2 == 0
    depth = 0
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    for formula in re.findall(r"\$([^$]*)\$", plain):
        assert not re.search(r"\^\{[^{}]*\}\^|_\{[^{}]*\}_", formula), "no double scripts"
    page = to_html(text)
    tags = re.findall(r"</?(\w+)[^>]*>", page)
    assert set(tags) <= {"i", "sub", "sup", "span", "code"}
    for tag in set(tags):
        assert len(re.findall(rf"<{tag}[ >]", page)) == page.count(f"</{tag}>")
