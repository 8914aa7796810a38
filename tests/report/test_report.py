"""`verify report`: the same bytes every time, repaired after damage, sound HTML, LaTeX that compiles and fits."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.commands.documents import PYTHON, command
from tests.commands.packages import write_package
from verify.claims.simulation import Request, simulate
from verify.report import examples as worked
from verify.report.build import build
from verify.report.latex import LONG, TEXT_WIDTH, layouts
from verify.transformer.instance import parse_instance

Files = dict[str, bytes]


def files_of(folder: Path) -> Files:
    """Every file below a folder with its content."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return write_package(tmp_path, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, package: str) -> Path:
    """A finished report of the small package."""
    build(package, tmp_path / "reports", jobs=1)
    return tmp_path / "reports"


# --- the same bytes ------------------------------------------------------------------------------------------------------


def test_twice_the_same_and_the_second_time_nothing_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process or two, this working directory or another."""
    first = command(capsys, "--proofs", package, "report", "--out", tmp_path / "a", "--jobs", 1, "--json")
    assert (first.code, first.err) == (0, "")
    summary = first.json()
    assert summary["held"] is True and "every verdict is as expected" in summary["message"]
    before = files_of(tmp_path / "a")
    assert set(summary["changed"]) | {"manifest.json"} == set(before)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")}
    started = time.monotonic()
    second = command(capsys, "--proofs", package, "report", "--out", tmp_path / "a")
    assert second.code == 0 and "up to date" in second.out and time.monotonic() - started < 2
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert command(capsys, "--proofs", package, "report", "--out", "b", "--jobs", 2).code == 0
    assert files_of(tmp_path / "elsewhere" / "b") == before


def test_no_trace_of_the_machine(folder: Path, tmp_path: Path) -> None:
    """No times, paths, user or host names."""
    for name, content in files_of(folder).items():
        text = content.decode()
        assert str(tmp_path) not in text and "/root" not in text and "/home" not in text, name
        assert not re.search(r"20\d\d-\d\d-\d\d|\d\d:\d\d:\d\d", text), name
        assert text.endswith("\n") and "\r" not in text


def test_the_manifest_is_right(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    found = files_of(folder)
    del found["manifest.json"]
    assert manifest["format"] == "manifest/1" and manifest["held"] is True
    assert manifest["files"] == {name: hashlib.sha256(content).hexdigest() for name, content in sorted(found.items())}
    assert list(manifest["files"]) == sorted(manifest["files"])
    assert all(re.fullmatch(r"[0-9a-f]{64}", manifest[key]) for key in ("source", "digest"))


def test_a_changed_lemma_is_noticed(tmp_path: Path, package: str, folder: Path) -> None:
    source = next(tmp_path.rglob("__init__.py"))
    before = json.loads((folder / "manifest.json").read_text())["source"]
    source.write_text(source.read_text() + "# changed\n")
    assert "up to date" not in build(package, folder, jobs=1)["message"]
    assert json.loads((folder / "manifest.json").read_text())["source"] != before


def test_an_unexpected_verdict_fails_the_report_every_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = write_package(tmp_path, monkeypatch, "printed = lambda n: n\n")
    for _ in range(2):
        answer = command(capsys, "--proofs", package, "report", "--out", tmp_path / "r", "--jobs", 1)
        assert answer.code == 1
    assert "up to date" in answer.out
    page = "".join(path.read_text() for path in (tmp_path / "r" / "html").glob("claim-*.html"))
    assert (
        "(expected refuted)" in page and "(expected \\thvrefuted{})" in (tmp_path / "r/appendix/claims.tex").read_text()
    )


# --- damage --------------------------------------------------------------------------------------------------------------

Damage = Callable[[Path], None]


def _carriage_returns(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def _directory(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/null")


DAMAGES: dict[str, Damage] = {
    "deleted": lambda path: path.unlink(),
    "one byte more": lambda path: path.write_bytes(path.read_bytes() + b" "),
    "one byte changed": lambda path: path.write_bytes(path.read_bytes().replace(b"e", b"f", 1)),
    "other line ends": _carriage_returns,
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe"),
    "a link": _directory,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_any_file_is_repaired(tmp_path: Path, package: str, folder: Path, damage: str) -> None:
    whole = files_of(folder)
    for name in whole:
        DAMAGES[damage](folder / name)
        assert "up to date" not in build(package, folder, jobs=1)["message"], name
        assert files_of(folder) == whole
        assert not any(path.is_symlink() for path in folder.rglob("*"))


def test_a_manifest_that_lies_is_not_believed(package: str, folder: Path) -> None:
    """Its verdict, its list of files and its hashes are vouched for by its own digest."""
    whole = files_of(folder)
    for nonsense in ("", "[]\n", "[" * 100000, '{"format": "manifest/1"}'):
        (folder / "manifest.json").write_text(nonsense)
        build(package, folder, jobs=1)
        assert files_of(folder) == whole
    for key, value in (("held", False), ("files", {}), ("version", "9"), ("libraries", {})):
        manifest = json.loads(whole["manifest.json"]) | {key: value}
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        assert build(package, folder, jobs=1)["held"] is True
        assert files_of(folder) == whole


def test_stale_files_go_and_foreign_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, folder: Path
) -> None:
    """Evidence of checks that are gone is removed; nothing is removed that this command did not write."""
    (folder / "notes.txt").write_text("mine")
    (folder / "evidence" / "mine.json").write_text("mine")
    (tmp_path / "outside").write_text("mine")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] |= {"../outside": "", "/etc/hostname": "", "evidence/../../outside": ""}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    other = write_package(tmp_path, monkeypatch, "del N.checks[:]\n")
    gone = [name for name in files_of(folder) if name.startswith("evidence/N1")]
    assert gone
    build(other, folder, jobs=1)
    assert not any((folder / name).exists() for name in gone)
    assert (folder / "notes.txt").read_text() == "mine" and (folder / "evidence" / "mine.json").exists()
    assert (tmp_path / "outside").read_text() == "mine"
    build(other, tmp_path / "fresh", jobs=1)
    assert set(files_of(folder)) - set(files_of(tmp_path / "fresh")) == {"notes.txt", "evidence/mine.json"}


KILLER = """
import os, signal, sys
from pathlib import Path
from verify.report.build import build
moment, replace = int(sys.argv[3]), os.replace
def counted(a, b):
    global moment
    if moment == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    moment -= 1
    replace(a, b)
os.replace = counted
build(sys.argv[1], Path(sys.argv[2]), jobs=1)
"""
"""Builds a report and kills itself (-9) at its n-th replacement of a file."""

ONE_CHECK_MORE = """
Z.title = "Older"
@A.check("gone", "exact", predicate="p", implies="i")
def gone():
    return outcome(Status.PROVED, n=7)
"""


@pytest.mark.parametrize("written", ["new", "old"])
def test_a_kill_at_any_moment_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    """Killed while one report is written over another; then an ordinary run makes the new one and nothing else.

    `new` over `old`: the same run again completes the work. `old` over `new`: files that only the killed run knew of go.
    """
    packages = {
        "new": write_package(tmp_path, monkeypatch),
        "old": write_package(tmp_path, monkeypatch, ONE_CHECK_MORE),
    }
    for name, package in packages.items():
        build(package, tmp_path / name, jobs=1)
    whole = files_of(tmp_path / "new")
    only_old = {"evidence/A.1-gone-gone-exact.json"}
    assert set(files_of(tmp_path / "old")) - set(whole) == only_old
    before = "old" if written == "new" else "new"
    kills, finished, mixed = 0, False, False
    for moment in (0, 1, 3, 5, 6, 99):
        folder = tmp_path / f"killed{moment}"
        shutil.copytree(tmp_path / before, folder)
        run = subprocess.run([PYTHON[0], "-c", KILLER, packages[written], str(folder), str(moment)], timeout=60)
        if run.returncode == -signal.SIGKILL:
            kills += 1
            assert not finished
            assert any(path.name.endswith(".part") for path in folder.rglob(".*")), "the killed write left its part"
            mixed = mixed or files_of(folder).keys() & only_old != only_old & files_of(tmp_path / before).keys()
        else:
            assert run.returncode == 0
            finished = True
        complete = {name: text for name, text in files_of(folder).items() if not name.endswith(".part")} == whole
        message = build(packages["new"], folder, jobs=1)["message"]
        assert ("up to date" in message) is complete
        assert files_of(folder) == whole
    assert kills >= 4 and finished and (mixed or written == "new")


@pytest.mark.parametrize("where", ["file", "file/below", "/proc/reports"])
def test_a_folder_that_cannot_be_written_is_found_out_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    package = write_package(
        tmp_path,
        monkeypatch,
        "A.check('slow', 'ball', predicate='p', implies='i')(lambda: __import__('time').sleep(60))\n",
    )
    (tmp_path / "file").write_text("mine")
    started = time.monotonic()
    line = command(capsys, "--proofs", package, "report", "--jobs", 1, "--out", tmp_path / where).complaint()
    assert "--out" in line and time.monotonic() - started < 30
    assert (tmp_path / "file").read_text() == "mine"


# --- the ledger and the evidence -----------------------------------------------------------------------------------------


def test_ledger_and_evidence_say_the_same(folder: Path) -> None:
    ledger = json.loads((folder / "ledger.json").read_text())
    assert set(ledger) == {"format", "claims", "dependencies", "assumptions", "tables", "figures"}
    assert [claim["id"] for claim in ledger["claims"]] == ["A.1", "Z.9", "R1", "N1", "own"]
    assert ledger["dependencies"] == [["N1", "A.1"]]
    assert set(ledger["assumptions"]) == {"FLINT", "Lindemann", "Arb", "text of the paper"}
    statuses = {
        (claim["id"], name): construction["status"]
        for claim in ledger["claims"]
        for name, construction in claim["constructions"].items()
    }
    assert statuses == {
        ("A.1", "printed"): "refuted",
        ("A.1", "repaired"): "proved",
        ("R1", "printed"): "assumed",
        ("N1", "printed"): "proved",
        ("own", "best one"): "undecided",
    }
    named = set()
    for claim in ledger["claims"]:
        for construction in claim["constructions"].values():
            for verdict in construction["verdicts"]:
                if verdict["evidence"]:
                    evidence = json.loads((folder / verdict["evidence_file"]).read_text())
                    named.add(verdict.pop("evidence_file"))
                    assert evidence.pop("digest") and len(evidence["statements"]) == verdict["statements"]
                    assert evidence == {"format": "evidence/1", **verdict, "statements": evidence["statements"]}
                else:
                    assert "evidence_file" not in verdict
    assert named == {name for name in files_of(folder) if name.startswith("evidence/")}


def test_worked_examples_are_what_simulate_says() -> None:
    from proofs.registry import REGISTRY

    found = worked.example_files(REGISTRY)
    instances = {name: parse_instance(found[f"{name}.json"], name) for name in ("exp2", "exp")}
    assert len(found) == 2 + len(worked.RUNS)
    for kernel, construction, minimise in worked.RUNS:
        result = json.loads(found[f"{kernel}-{construction}-{minimise}.json"])
        request = Request(instances[kernel], 6, minimise=minimise)
        assert result == simulate(request, REGISTRY.constructions[construction])
        assert result["equal"] is True


# --- HTML ----------------------------------------------------------------------------------------------------------------

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr"}


class Page(HTMLParser):
    """Collects ids, links and the text of each section; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.labels: list[str] = []
        self.tags: set[str] = set()
        self.text: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        assert len({name for name, _ in attrs}) == len(attrs)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "action", "poster", "data"):
                self.links.append(value or "")
            if name in ("aria-labelledby", "for"):
                self.labels.append(value or "")
            assert not name.startswith("on"), "no scripts"

    def handle_endtag(self, tag: str) -> None:
        assert tag not in VOID and self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.rows and ("td" in self.open or "th" in self.open):
            self.rows[-1][-1] += data


def check_file(path: Path, ids: dict[Path, list[str]]) -> Page:
    """One page: balanced, unique ids, no scripts and no requests; every link leads to a file, every anchor to an id."""
    text = path.read_text()
    assert text.startswith("<!doctype html>")
    page = Page(text)
    assert len(page.ids) == len(set(page.ids)) and all(page.ids) and not any(" " in name for name in page.ids)
    assert set(page.labels) <= set(page.ids)
    assert not page.tags & {"script", "iframe", "object", "embed", "base", "form"}
    plain = text.replace('xmlns="http://www.w3.org/2000/svg"', "").replace("url(#tip)", "")
    assert "http:" not in plain and "https:" not in plain and "@import" not in plain and "url(" not in plain
    for link in page.links:
        target, _, anchor = link.partition("#")
        assert "//" not in link and not target.startswith("/")
        file = (path.parent / unquote(target)).resolve() if target else path.resolve()
        assert file.is_file(), link
        if anchor:
            if file not in ids:
                ids[file] = Page(file.read_text()).ids
            assert unquote(anchor) in ids[file], link
    return page


def claim_page(folder: Path, claim: str) -> Path:
    return folder / "html" / f"claim-{re.sub(r'[^A-Za-z0-9.]+', '-', claim)}.html"


def check_site(folder: Path) -> Page:
    """Every page of a report, and every verdict of the ledger on its claim's page; returns the front page."""
    ids: dict[Path, list[str]] = {}
    for path in sorted((folder / "html").glob("*.html")):
        check_file(path, ids)
    assert "url(" not in (folder / "html" / "style.css").read_text()
    front = check_file(folder / "html" / "index.html", ids)
    ledger = json.loads((folder / "ledger.json").read_text())
    for claim in ledger["claims"]:
        row = next(row for row in front.rows if row[0] == claim["id"])
        shown = re.sub(r"\s+", " ", row[2]).strip()
        wanted = [f"{name}: {construction['status']}" for name, construction in claim["constructions"].items()]
        assert shown.replace("; ", ";").split(";") == (wanted or ["no check"]), claim["id"]
        section = claim_page(folder, claim["id"]).read_text()
        headings = re.findall(r'<h3>(.*?): <span class="status (\w+)">(\w+)</span></h3>', section)
        assert headings == [(name, c["status"], c["status"]) for name, c in claim["constructions"].items()]
        verdicts = re.findall(r'<summary><span class="status (\w+)">(\w+)</span>', section)
        every = [v["status"] for c in claim["constructions"].values() for v in c["verdicts"]]
        assert verdicts == [(status, status) for status in every]
        answer = re.search(r'<p class="answer">(.*?)</p>', section, re.DOTALL)
        assert answer
        assert re.findall(r'<span class="status (\w+)">(\w+)</span>', answer.group(1)) == [
            (c["status"], c["status"]) for c in claim["constructions"].values()
        ]
    assert {path.name for path in (folder / "html").glob("claim-*.html")} == {
        claim_page(folder, claim["id"]).name for claim in ledger["claims"]
    }
    return front


def test_the_page_of_the_small_package(folder: Path) -> None:
    check_site(folder)
    pages = [Page(path.read_text()) for path in (folder / "html").glob("*.html")]
    text = "".join(part for page in pages for part in page.text)
    assert "<b>bold</b>" in text and "100% of" in text, "text is text"
    assert all("b" not in page.tags for page in pages)


# --- LaTeX ---------------------------------------------------------------------------------------------------------------


def check_statuses_in_latex(folder: Path) -> None:
    """Each construction's status, in claims.tex and in summary.tex, is the ledger's."""
    ledger = json.loads((folder / "ledger.json").read_text())
    claims = (folder / "appendix" / "claims.tex").read_text()
    assert claims.count("{") == claims.count("}") - claims.count(r"\}") + claims.count(r"\{")
    found = re.findall(
        r"^\\thvclaim\{([^}]*)\}|^\\thvconstruction\{([^}]*)\}\{\\thv(\w+)\{\}\}|^\\item \\thv(\w+)\{\}", claims, re.M
    )
    wanted: list[tuple[str, str, str, str]] = []
    for claim in ledger["claims"]:
        wanted.append((claim["id"], "", "", ""))
        for name, construction in claim["constructions"].items():
            wanted.append(("", name, construction["status"], ""))
            wanted += [("", "", "", verdict["status"]) for verdict in construction["verdicts"]]
    assert found == wanted
    summary = (folder / "appendix" / "summary.tex").read_text()
    every = re.findall(r"\\thv(\w+)\{\}", summary)
    assert every == [c["status"] for claim in ledger["claims"] for c in claim["constructions"].values()]


def test_statuses_in_latex(folder: Path) -> None:
    check_statuses_in_latex(folder)


def test_layouts_fit_or_are_cut() -> None:
    """Widths by the estimate; every column once, the first one repeated."""
    for columns, cell in ((2, 3), (12, 4), (13, 9), (40, 5)):
        table = {
            "headers": [f"column number {c}" for c in range(columns)],
            "rows": [["1" * cell] * columns] * (LONG + 1),
        }
        parts = layouts(table)
        numbers = [column.index for part in parts for column in part.columns]
        assert sorted(set(numbers)) == list(range(columns))
        assert [part.columns[0].index for part in parts] == [0] * len(parts)
        assert len(numbers) == columns + len(parts) - 1
        for part in parts:
            assert part.points == {"small": 9.0, "footnotesize": 8.0, "scriptsize": 7.0}[part.size]
            width = sum(column.width for column in part.columns) * 0.5 * part.points
            assert width + 2 * part.gap * (len(part.columns) - 1) <= TEXT_WIDTH
    assert len(layouts({"headers": ["a", "b"], "rows": []})) == 1


ARTICLE = r"""\documentclass{article}
\usepackage[textwidth=5.5in,textheight=9in]{geometry}
\usepackage{booktabs,longtable}
\begin{document}
\section{An article of its own}
\input{summary}
\input{claims}
\input{tables}
\end{document}
"""


def compile_latex(folder: Path, name: str) -> str:
    """Compiles twice; returns the log. Asserts that nothing is wrong and no line sticks out by more than 5 points."""
    for _ in range(2):
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name],
            cwd=folder,
            capture_output=True,
            timeout=120,
        )
        log = (folder / name).with_suffix(".log").read_text(errors="replace")
        assert done.returncode == 0, [line for line in log.splitlines() if line.startswith("!")]
    assert not re.search(r"^!|undefined|multiply defined|Missing character", log, re.M), log
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", log)]
    assert all(points <= 5 for points in wide), wide
    assert (folder / name).with_suffix(".pdf").stat().st_size > 1000
    return log


def check_latex(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "appendix", tmp_path / "latex")
    compile_latex(tmp_path / "latex", "appendix.tex")
    (tmp_path / "latex" / "article.tex").write_text(ARTICLE)
    compile_latex(tmp_path / "latex", "article.tex")


needs_latex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")


@needs_latex
def test_latex_of_the_small_package(folder: Path, tmp_path: Path) -> None:
    """Text that is hard to set, a table of thirty columns and 45 rows."""
    check_latex(folder, tmp_path)


# --- the paper -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the paper, as the command writes it."""
    out = tmp_path_factory.mktemp("paper") / "reports"
    done = subprocess.run([*PYTHON, "report", "--out", str(out)], capture_output=True, text=True, timeout=1800)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return out


@pytest.mark.slow
def test_the_report_of_the_paper(paper: Path) -> None:
    check_site(paper)
    check_statuses_in_latex(paper)
    started = time.monotonic()
    done = subprocess.run([*PYTHON, "report", "--out", str(paper)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "up to date" in done.stdout and time.monotonic() - started < 10


@pytest.mark.slow
@needs_latex
def test_the_latex_of_the_paper(paper: Path, tmp_path: Path) -> None:
    check_latex(paper, tmp_path)


@pytest.mark.slow
def test_the_report_of_the_paper_is_the_same_again(paper: Path, tmp_path: Path) -> None:
    """In this process, one check after the other, from another directory."""
    build("proofs", tmp_path / "again", jobs=1)
    assert files_of(tmp_path / "again") == files_of(paper)
