"""A package with a known weak spot: the hunt finds what its checks reject, and names what they miss."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.commands.documents import command
from verify.errors import RequestError
from verify.trust.hunt import catalogue, hunt, importers, sample, timed

LEMMA = '''
"""A lemma with one construction."""
from verify.claims.claim import Claim, part_of
from verify.claims.verdict import Outcome, Scope, Status
from {package}.registry import REGISTRY

CLAIM = REGISTRY.add(Claim("A.1", "t", "s", "s", kind="lemma"))

@part_of("A.1")
def triangle(n):
    total = 0
    while n > 0:
        total, n = total + n, n - 1
    return total

@CLAIM.check("printed", "integers", predicate="p", implies="i")
def sums():
    """Only at n = 0 and 3: a fault at n = 1 would be missed, and so is the one of the comparison, which makes no difference."""
    held = triangle(3) == 6 and triangle(0) == 0
    return Outcome(Status.PROVED if held else Status.REFUTED, Scope.instance(), "o", "i", "d", {{"n": 3}})
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"weak_{abs(hash(str(tmp_path)))}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text(f"from {name} import lemma\nfrom {name}.registry import REGISTRY\n")
    (folder / "registry.py").write_text("from verify.claims.claim import Registry\n\nREGISTRY = Registry()\n")
    (folder / "lemma.py").write_text(LEMMA.format(package=name))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield name
    for module in [m for m in sys.modules if m.split(".")[0] == name]:
        del sys.modules[module]


def test_what_is_rejected_and_what_survives(package: str) -> None:
    faults = catalogue(package)
    fates = hunt(package, faults, timed(package), limit=10)
    outcome = {(f.mutant.before, f.mutant.after): f.by for f in fates}
    check = "A.1 printed sums (integers)"
    assert outcome[("total + n", "total - n")] == (check,)
    assert outcome[("n > 0", "n >= 0")] == ()
    (message,) = outcome[("n - 1", "n + 1")]
    assert message == "no end within 10 s"
    assert next(f for f in fates if f.by == (check,)).only == check
    assert [f.mutant for f in fates] == faults


def test_modules_that_import_the_changed_one() -> None:
    assert importers("proofs", "proofs.lemma_a1") >= {"proofs.lemma_a1"}
    assert "proofs.lemma_b1" in importers("proofs", "proofs.aggregation")
    assert "proofs.lemma_a1" not in importers("proofs", "proofs.theorem_d1")


def test_the_catalogue_of_the_paper_is_large() -> None:
    faults = catalogue("proofs")
    assert len(faults) > 3500 and len({m.module for m in faults}) >= 16
    assert len({(m.module, m.number) for m in faults}) == len({m.key for m in faults}) == len(faults)
    assert any(m.module == "proofs.aggregation" and m.function == "tree_calls" for m in faults)  # marked by its users
    with pytest.raises(RequestError, match="no constructions to change"):
        catalogue("proofs", "nonsense")


def test_a_sample_stays_when_the_module_changes_elsewhere() -> None:
    faults = catalogue("proofs", "lemma_b1")
    chosen = sample(faults, 40, 3)
    assert len(chosen) == 40 and chosen == [fault for fault in faults if fault in chosen]
    fewer = [fault for at, fault in enumerate(faults) if at % 7]
    kept = {fault.key for fault in chosen}
    assert {fault.key for fault in sample(fewer, 40, 3)} >= {fault.key for fault in fewer if fault.key in kept}
    assert sample(faults, 40, 4) != chosen


def test_the_command(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = command(capsys, "--proofs", package, "trust", "--sample", "3", "--seed", "1", "--limit", "10", "--json")
    document = answer.json()
    assert document["format"] == "trust/1" and document["tried"] == 3 < document["catalogue"]
    assert document["rejected"] + len(document["survivors"]) == 3
    assert answer.code == (1 if document["unexplained"] else 0)
    answer = command(capsys, "trust", "--module", "nonsense")
    assert answer.code == 2 and "no constructions to change in 'nonsense'" in answer.err
