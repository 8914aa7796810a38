"""The parts of the site that are drawn: the roadmap, plots, matrices, a module's account; and the answer to the review."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from tests.commands.documents import command
from tests.commands.packages import write_package
from verify.claims.figure import Figure
from verify.report.account import account_html, account_tex
from verify.report.counterexample import matrices_html, matrices_in, matrices_tex
from verify.report.figures import file_name, picture_name, render_figures
from verify.report.graph import colour, draw_graph
from verify.report.html import page_name, summary_lines
from verify.report.response import render_response


def claim(id: str, kind: str = "lemma", **constructions: str) -> dict[str, Any]:
    """A claim of a ledger with the status of each construction."""
    return {
        "id": id,
        "kind": kind,
        "title": f"title of {id} <&>",
        "statement": "A statement.",
        "source": "somewhere",
        "constructions": {
            name: {"status": status, "verdicts": [verdict(status)]} for name, status in constructions.items()
        },
    }


def verdict(status: str) -> dict[str, Any]:
    return {
        "arithmetic": "exact",
        "status": status,
        "scope": "this instance",
        "detail": f"found to be {status}",
        "assumes": ["FLINT"],
        "evidence_file": "evidence/x.json",
        "evidence": {},
    }


LEDGER = {
    "claims": [
        claim("A.1", printed="proved"),
        claim("B.1", printed="refuted", repaired="proved"),
        claim("B.2", printed="refuted", repaired="refuted"),
        claim("B.4", repaired="proved"),
        claim("T 1", "construction", plain="proved"),
        claim("R2", "comment", printed="proved"),
        claim("N7", "finding", printed="undecided"),
    ],
    "dependencies": [["B.1", "A.1"], ["B.4", "B.1"], ["B.4", "A.1"], ["B.1", "T 1"], ["R2", "B.1"]],
}


def places(picture: str) -> dict[str, tuple[int, int]]:
    """Where each box of a graph stands."""
    root = ElementTree.fromstring(picture)
    found = {}
    for link in root.iter("{http://www.w3.org/2000/svg}a"):
        (box,) = link.iter("{http://www.w3.org/2000/svg}rect")
        (name,) = link.iter("{http://www.w3.org/2000/svg}text")
        found[name.text or ""] = (int(box.get("x", "")), int(box.get("y", "")))
    return found


def test_the_graph_runs_from_left_to_right() -> None:
    picture = draw_graph(LEDGER, page_name)
    found = places(picture)
    assert set(found) == {"A.1", "B.1", "B.4", "T 1"}, "findings and unconnected statements are left out"
    for later, earlier in LEDGER["dependencies"]:
        if later in found:
            assert found[earlier][0] < found[later][0]
    assert len(set(found.values())) == len(found)
    assert 'href="claim-T-1.html"' in picture and picture.count("marker-end") == 4


def test_a_cycle_of_dependencies_is_drawn_too() -> None:
    ledger = {"claims": LEDGER["claims"], "dependencies": [["A.1", "B.1"], ["B.1", "A.1"]]}
    assert set(places(draw_graph(ledger, page_name))) == {"A.1", "B.1"}
    assert draw_graph({"claims": LEDGER["claims"], "dependencies": []}, page_name) == ""


def test_colours_of_the_graph() -> None:
    assert [colour(c) for c in LEDGER["claims"]] == [
        "proved",
        "refuted",
        "mixed",
        "proved",
        "proved",
        "proved",
        "mixed",
    ]
    assert colour(claim("x")) == "none" and colour(claim("x", printed="assumed")) == "assumed"


def test_the_front_page_sorts_statements_by_what_holds() -> None:
    lines = {line["text"]: [c["id"] for c in line["claims"]] for line in summary_lines(LEDGER)}
    assert list(lines.values()) == [["A.1"], ["B.1"], ["B.2"], ["R2"], ["T 1"], ["N7"]]


CURVES = Figure(
    "two curves",
    "N7",
    "Curves",
    "N",
    "bits",
    lambda: {"one": {"a": [(1.0, 2.0), (2.0, 5.0)]}, "two": {"a": [(1.0, 1.0)]}},
)
BARS = Figure(
    "bars", "N7", "Bars", "bits", "", lambda: {"one": {"a long label": [(0.0, 3.5)], "b": [(0.0, 0.0)]}}, bars=True
)


@pytest.mark.parametrize("figure", [CURVES, BARS])
def test_plots_are_sound_and_the_same_again(figure: Figure) -> None:
    ledger = {"figures": [figure.to_json()]}
    files, pictures = render_figures(ledger)
    assert render_figures(ledger) == (files, pictures)
    (pdf,) = files.values()
    assert list(files) == [f"appendix/{file_name(figure.to_json())}"] and pdf.startswith(b"%PDF")
    assert b"CreationDate" not in pdf and not re.search(rb"/(root|home|tmp)/", pdf)
    picture = pictures[figure.name]
    root = ElementTree.parse(io.StringIO(picture)).getroot()
    assert root.tag.endswith("svg") and not re.search(r"20\d\d-\d\d-\d\d", picture)
    assert figure.x in picture and all(title in picture for title in figure.compute())
    assert picture_name(figure.to_json()).endswith(".svg")


def test_matrices_of_a_refutation_are_mathematics() -> None:
    evidence = {
        "instance": {"X": [["1/2", "-3"], ["0", "1"]], "heads": [[{"WQ": [["1"]], "WK": [["2"]]}]], "N": 2},
        "ragged": [[1, 2], [3]],
        "words": [["a", "b"]],
        "large": [[1] * 40],
        "flags": [[True]],
    }
    found = matrices_in(evidence)
    assert found == [("X", [["1/2", "-3"], ["0", "1"]]), ("WQ", [["1"]]), ("WK", [["2"]])]
    shown = matrices_html({"status": "refuted", "evidence": evidence})
    assert len(shown) == 3
    for text in shown:
        ElementTree.fromstring(str(text))
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac>" in shown[0] and "<mo>−</mo><mn>3</mn>" in shown[0]
    assert "<msub><mi>W</mi><mi>Q</mi></msub>" in shown[1]
    assert matrices_html({"status": "proved", "evidence": evidence}) == []
    written = matrices_tex({"status": "refuted", "evidence": evidence})
    assert written[0] == r"X=\left(\begin{array}{rr}1/2&-3\\0&1\end{array}\right)" and written[1].startswith("W^Q=")
    assert matrices_tex({"status": "proved", "evidence": evidence}) == []


def test_an_account_keeps_its_text() -> None:
    text = account_html(
        "Title: `code` and **Bold.** text *soft*\n\n    a <= b\n\n* one\n  more\n* two <script>\n\nwindow r*s and 2*3"
    )
    assert "<strong>Bold.</strong>" in text and "<em>soft</em>" in text and "<code>code</code>" in text
    assert "a &lt;= b</pre>" in text and text.count("<li>") == 2 and "&lt;script&gt;" in text
    assert "<em>s and 2</em>" not in text
    written = account_tex("Title: `co_de` and **Bold.** 100%\n\n    a <= b & c\n\n* one\n* two")
    assert r"\thvstrong{Bold.}" in written and r"100\%" in written and r"\&" in written and written.count(r"\item") == 2
    ElementTree.fromstring(f"<div>{text}</div>".replace("&nbsp;", " "))


def test_every_comment_is_answered_or_named_as_open() -> None:
    text = render_response(LEDGER)["response.md"]
    assert text.count("\n## ") == 10
    assert text.count("Not answered here") == 8
    assert "**proved**, this instance. found to be proved. Assumes: FLINT. [evidence](evidence/x.json)" in text
    assert "verify check R2" in text and "- **N7**" in text
    assert render_response({"claims": []}) == {}


def test_check_compares_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = write_package(tmp_path, monkeypatch)
    out = tmp_path / "reports"
    assert "no finished report" in command(capsys, "--proofs", package, "report", "--out", out, "--check").complaint()
    assert command(capsys, "--proofs", package, "report", "--out", out, "--jobs", 1).code == 0
    same = command(capsys, "--proofs", package, "report", "--out", out, "--check", "--jobs", 1)
    assert same.code == 0 and "the same byte for byte" in same.out
    page = out / "html" / "index.html"
    page.write_text(page.read_text() + " ")
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    other = command(capsys, "--proofs", package, "report", "--out", out, "--check", "--jobs", 1, "--json")
    assert other.code == 1 and other.json()["differing"] == ["html/index.html"]
    assert times == {path: path.stat().st_mtime_ns for path in out.rglob("*")}
