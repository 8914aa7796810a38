"""The record of seeded faults: taken up where it stands, void for what has changed, and never half a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trust.test_hunt import package as package  # the package with a weak spot
from verify.claims.runner import load
from verify.errors import RequestError
from verify.trust.hunt import Fate, catalogue, sources, timed
from verify.trust.record import document, known, write

CHECK = "A.1 printed sums (integers)"


def record(package: str, fates: list[Fate]) -> dict[str, object]:
    return document(
        package, fates, timed(package), catalogue=9, sample=None, seed=0, equivalent=load(package).equivalent
    )


def test_what_it_says(package: str) -> None:
    faults = catalogue(package)
    fates = [Fate(faults[0], (CHECK,)), Fate(faults[1], ()), Fate(faults[2], ("a", "b")), Fate(faults[3], ())]
    load(package).equivalent[faults[3].key] = "it makes no difference because ..."
    found = record(package, fates)
    assert (found["tried"], found["rejected"], found["equivalent"], found["unexplained"]) == (4, 2, 1, 1)
    assert found["needed"] == [{"check": CHECK, "faults": 1, "example": faults[0].key}] and found["redundant"] == []
    survivors = [(s["fault"], s["proof"]) for s in found["survivors"]]
    assert survivors == [(faults[1].key, None), (faults[3].key, "it makes no difference because ...")]
    assert record(package, fates[1:])["redundant"] == [CHECK]


def test_it_is_taken_up_until_the_sources_change(package: str, tmp_path: Path) -> None:
    faults = catalogue(package)
    fates = [Fate(fault, ("a", "b")) for fault in faults[:3]]
    path = tmp_path / "trust.json"
    assert known(package, path, faults) == []
    write(path, record(package, fates))
    assert known(package, path, faults) == fates
    module = next(Path(tmp_path, package, "lemma.py") for name in sources(package) if name.endswith(".lemma"))
    module.write_text(module.read_text() + "\n# changed\n")
    assert known(package, path, catalogue(package)) == []


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": "trust/2"}', '{"format": "trust/1", "faults": [1]}', "[" * 9999]
)
def test_other_files_are_refused_and_left_alone(package: str, tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(RequestError, match="is no trust/1 record"):
        known(package, path, catalogue(package))
    assert path.read_text() == text


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot write"):
        write(tmp_path / "absent" / "trust.json", {})
    write(tmp_path / "trust.json", {"a": 1})
    assert json.loads((tmp_path / "trust.json").read_text()) == {"a": 1} and len(list(tmp_path.iterdir())) == 1
