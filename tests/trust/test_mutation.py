"""Seeded faults: all places of the constructions, each changed once, nothing else; the changed source is what it says."""

from __future__ import annotations

import ast

from verify.trust.mutation import mutants, uses

SOURCE = '''
"""Text with 1 + 1."""
LIMIT = 7

def helper(n: "1 + 2" = 3):
    """Says 4 + 4."""
    return -n

def unused(n):
    return n + 1

@part_of("A.1")
def construction(N, M):
    if not N < M:
        raise ValueError(f"{N + 1} of {2}")
    return max(N * 2, helper(M)) if N == M and True else N // M

@CLAIM.check("printed", "exact", predicate="p", implies="i")
def check():
    return construction(1, 2) + 5
'''


def test_every_place_is_changed_once() -> None:
    changes = [(m.function, m.before, m.after) for m in mutants("module", SOURCE)]
    assert set(changes) == {
        ("helper", "3", "4"),
        ("helper", "3", "2"),
        ("helper", "-n", "+n"),
        ("construction", "not N < M", "not not N < M"),
        ("construction", "N < M", "N <= M"),
        ("construction", "N < M", "N >= M"),
        ("construction", "max(N * 2, helper(M))", "min(N * 2, helper(M))"),
        ("construction", "N * 2", "N + 2"),
        ("construction", "2", "3"),
        ("construction", "2", "1"),
        ("construction", "N == M", "N != M"),
        ("construction", "N == M and True", "N == M or True"),
        ("construction", "True", "False"),
        ("construction", "N // M", "N * M"),
    }
    assert len(changes) == 14


def test_each_mutant_differs_from_the_source_in_one_line() -> None:
    original = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in mutants("module", SOURCE):
        changed = mutant.source.splitlines()
        assert len(changed) == len(original)
        assert sum(a != b for a, b in zip(original, changed, strict=True)) == 1


def test_a_module_without_checks_is_construction_throughout() -> None:
    source = "def f(x):\n    def g(y):\n        return y + 1\n    return g(x) - 2\n\nclass C:\n    def m(self):\n        return 3 * 4\n"
    changes = [(m.function, m.before, m.after) for m in mutants("module", source)]
    assert {function for function, _, _ in changes} == {"f", "m"} and len(changes) == len(set(changes)) == 12 - 1


def test_a_module_of_checks_alone_has_none() -> None:
    assert mutants("module", SOURCE.replace("part_of", "other")) == []


def test_what_other_modules_use_is_construction() -> None:
    source = SOURCE.replace("@part_of", "@other") + "\nTABLE = {1: unused}\n"
    assert {m.function for m in mutants("module", source, frozenset({"helper"}))} == {"helper"}
    assert {m.function for m in mutants("module", source, frozenset({"TABLE"}))} == {"unused"}
    assert {m.function for m in mutants("module", source, frozenset({"construction"}))} == {"construction", "helper"}
    assert mutants("module", source, frozenset({"check", "absent"})) == []


def test_uses_of_other_modules() -> None:
    source = "from p.a import f, g as h\nfrom p import b, c as d\nimport q\n\ndef k():\n    return b.x + d.y + q.z\n"
    assert uses(source, "p") == {("p.a", "f"), ("p.a", "g"), ("p.b", "x"), ("p.c", "y")}
