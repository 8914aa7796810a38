"""The claims of the paper as a whole: names, assumptions, dependencies; and the registry's own rules."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

import proofs
from verify.claims.claim import Claim, Registry, part_of, recording, remembered
from verify.claims.runner import load, run_checks
from verify.claims.table import Table
from verify.claims.verdict import ASSUMPTIONS, Outcome, Scope, Status, Verdict
from verify.errors import RequestError
from verify.report.ledger import evidence_name, make_ledger, summary

REGISTRY = proofs.REGISTRY
CHECKS = [check for claim in REGISTRY.claims.values() for check in claim.checks]


def test_every_assumption_is_on_the_list() -> None:
    for check in CHECKS:
        assert set(check.assumes) <= set(ASSUMPTIONS), check
    assert all(text.strip() for text in ASSUMPTIONS.values())


def test_an_assumption_that_is_not_on_the_list_is_refused() -> None:
    claim = Claim("X", "t", "s", "s")
    with pytest.raises(ValueError, match="luck"):
        claim.check("c", "exact", predicate="p", implies="i", assumes=("FLINT", "luck"))
    assert not claim.checks


def test_every_check_says_what_it_recomputes_and_what_follows() -> None:
    for check in CHECKS:
        assert check.predicate.strip() and check.implies.strip(), check
        assert check.construction.strip() and check.arithmetic.strip()
    for claim in REGISTRY.claims.values():
        assert claim.title.strip() and claim.statement.strip() and claim.source.strip()
        assert re.fullmatch(r"[A-Za-z0-9.]+", claim.id), "an id is part of file names, links and commands"


def test_names_of_claims_aliases_and_evidence_files_are_unique() -> None:
    names = [name.upper() for claim in REGISTRY.claims.values() for name in (claim.id, *claim.aliases)]
    assert len(names) == len(set(names))
    places = [(check.claim, check.construction, check.arithmetic, check.name) for check in CHECKS]
    assert len(places) == len(set(places))
    files = [evidence_name(verdict(check.claim, check.name, check.construction, check.arithmetic)) for check in CHECKS]
    assert len({file.lower() for file in files}) == len(files)


def test_findings_of_the_review_are_all_there() -> None:
    """Major 1 to 4 and minor 1 to 5, and what 2^-N costs."""
    for name in ("R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "N7"):
        assert REGISTRY.find(name).checks


def verdict(claim: str, name: str, construction: str, arithmetic: str, status: Status = Status.PROVED) -> Verdict:
    outcome = Outcome(status, Scope.instance(), "o", "i", "d", {"e": 1})
    return Verdict(claim, name, construction, arithmetic, Status.PROVED, outcome, "p", "i", (), ())


@pytest.mark.parametrize("data", [{"x": 0.5}, {"x": [1, {"y": (2, 1e9)}]}])
def test_evidence_is_exact(data: dict[str, object]) -> None:
    """A float cannot be recomputed by anybody else."""
    for arguments in ((data, ()), ({}, (data,))):
        with pytest.raises(TypeError, match="evidence must be exact"):
            Outcome(Status.PROVED, Scope.instance(), "o", "i", "d", *arguments)


@pytest.mark.parametrize("construction", ["prefix-difference", "best one", "it's; $(x)"])
def test_the_command_of_a_verdict_can_be_pasted(construction: str) -> None:
    """A shell takes it apart into the same words."""
    words = shlex.split(verdict("A.1", "n", construction, "exact").command)
    assert words == ["verify", "check", "A.1", "--construction", construction, "--arithmetic", "exact"]


# --- the registry's own rules --------------------------------------------------------------------------------------------


def test_sorting_is_by_kind_and_number() -> None:
    registry = Registry()
    for name, kind in (("N10", "finding"), ("own", "construction"), ("B.10", "lemma"), ("N2", "finding")):
        registry.add(Claim(name, "t", "s", "s", kind=kind))
    for name, kind in (("B.2", "lemma"), ("R2", "comment"), ("A.1", "lemma"), ("R1", "finding"), ("1.2", "lemma")):
        registry.add(Claim(name, "t", "s", "s", kind=kind))
    registry.sort()
    assert list(registry.claims) == ["1.2", "A.1", "B.2", "B.10", "R1", "R2", "N2", "N10", "own"]


def test_names_are_taken_once() -> None:
    registry = Registry()
    registry.add(Claim("A", "t", "s", "s", aliases=("1",)))
    for claim in (Claim("A", "t", "s", "s"), Claim("1", "t", "s", "s"), Claim("B", "t", "s", "s", aliases=("A",))):
        with pytest.raises(ValueError, match="twice"):
            registry.add(claim)
    table = Table("t", "A", "c", ("x",), lambda: [])
    registry.tabulate(table)
    with pytest.raises(ValueError, match="twice"):
        registry.tabulate(table)
    assert registry.find("a").id == registry.find("1").id == "A"
    with pytest.raises(RequestError, match="known: A"):
        registry.find("C")


def test_a_table_with_a_short_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="2 cells"):
        Table("t", "A", "c", ("x", "y"), lambda: [["1", "2"], ["3"]]).to_json()


def test_what_a_check_used_is_recorded_while_it_runs() -> None:
    @part_of("B")
    def inner() -> int:
        return 1

    @part_of("A")
    def outer() -> int:
        return inner() + 1

    claim = Claim("A", "t", "s", "s")

    @claim.check("c", "exact", predicate="p", implies="i")
    def check() -> Outcome:
        assert outer() == 2
        return Outcome(Status.PROVED, Scope.instance(), "o", "i", "d")

    assert inner() == 1  # outside a check nothing is recorded
    with recording() as used:
        assert claim.checks[0].run().uses == ("B",)
    assert used == set(), "a check inside a recording has a record of its own"


def test_a_remembered_result_brings_the_claims_that_it_used() -> None:
    """First call, later calls, calls outside of a recording, other arguments; and anew after the results are forgotten."""
    runs = []

    @part_of("B")
    def construction(n: int) -> int:
        runs.append(n)
        return n + 1

    @remembered
    def measured(n: int) -> int:
        return construction(n) if n else 0

    assert measured(4) == 5 and runs == [4]
    for n, claims in ((4, {"B"}), (4, {"B"}), (0, set()), (7, {"B"}), (0, set())):
        with recording() as used:
            assert measured(n) == (n + 1 if n else 0)
        assert used == claims
    assert runs == [4, 7]
    measured.cache_clear()
    assert measured(7) == 8 and runs == [4, 7, 7]


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [
        ("PROVED", "proved"),
        ("PROVED ASSUMED", "assumed"),
        ("ASSUMED UNDECIDED PROVED", "undecided"),
        ("PROVED UNDECIDED REFUTED ASSUMED", "refuted"),
        ("", "undecided"),
    ],
)
def test_a_construction_is_as_good_as_its_worst_check(statuses: str, worst: str) -> None:
    assert summary([verdict("A", "n", "c", "exact", Status[s]) for s in statuses.split()]) == worst


# --- dependencies, recorded from runs ------------------------------------------------------------------------------------


def cycle(edges: set[tuple[str, str]]) -> list[str]:
    """A cycle of the graph, empty if there is none."""
    after: dict[str, list[str]] = {}
    for a, b in sorted(edges):
        after.setdefault(a, []).append(b)
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> Iterator[list[str]]:
        if node in path:
            yield path[path.index(node) :]
            return
        if node not in done:
            for other in after.get(node, []):
                yield from visit(other, [*path, node])
            done.add(node)

    return next((found for start in after for found in visit(start, [])), [])


def test_the_search_for_cycles_finds_them() -> None:
    assert cycle({("a", "b"), ("b", "c"), ("a", "c")}) == []
    assert sorted(cycle({("a", "b"), ("b", "c"), ("c", "b")})) == ["b", "c"]
    assert cycle({("a", "a")}) == ["a"]


def dependencies_are_sound(verdicts: list[Verdict]) -> None:
    edges = {(v.claim, used) for v in verdicts for used in v.uses}
    assert edges
    unknown = {used for _, used in edges} - set(REGISTRY.claims)
    assert not unknown, f"constructions marked as part of claims that nobody registered: {unknown}"
    lemmas = {name for name, claim in REGISTRY.claims.items() if claim.kind in ("lemma", "construction")}
    among_lemmas = {(a, b) for a, b in edges if a in lemmas and b in lemmas}
    assert not cycle(among_lemmas), f"a cycle of lemmas: {cycle(among_lemmas)}"
    assert all(REGISTRY.claims[used].kind != "finding" for _, used in edges), "a construction belongs to a lemma"


def test_dependencies_of_the_quick_claims() -> None:
    """Recorded by running them: no unknown claim, no cycle, and those that the text announces are there."""
    chosen = [c for c in CHECKS if c.claim in ("A.2", "R8", "N6", "T.1", "B.3", "N15") and c.arithmetic != "ball"]
    verdicts = run_checks("proofs", chosen, jobs=1)
    assert all(v.as_expected for v in verdicts)
    dependencies_are_sound(verdicts)
    edges = {(v.claim, used) for v in verdicts for used in v.uses}
    assert ("R8", "A.2") in edges


@pytest.mark.slow
def test_everything_is_as_announced() -> None:
    """Every check of the paper: as expected, evidence given, dependencies sound."""
    verdicts = run_checks("proofs", CHECKS)
    for v in verdicts:
        assert v.as_expected, (v.claim, v.check, v.outcome)
        assert v.outcome.detail and v.outcome.object and v.outcome.input and v.outcome.scope.text
        assert v.outcome.evidence or v.outcome.status is Status.ASSUMED, (v.claim, v.check)
    dependencies_are_sound(verdicts)
    ledger = make_ledger(load("proofs"), verdicts)
    for claim in ledger["claims"]:
        for name, construction in claim["constructions"].items():
            own = [v for v in verdicts if (v.claim, v.construction) == (claim["id"], name)]
            assert construction["status"] == summary(own) and len(construction["verdicts"]) == len(own) > 0
