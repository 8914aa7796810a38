"""The search against brute force on patterns that are not monotone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.audit.search import NotReached, fewest_bits

LOW, HIGH = 6, 30


@given(
    st.lists(st.booleans(), min_size=HIGH - LOW, max_size=HIGH - LOW),
    st.integers(LOW, HIGH + 10),
)
def test_the_least_and_the_last_are_those_of_brute_force(pattern: list[bool], start: int) -> None:
    """Everything below the floor misses, everything from the ceiling on meets; in between, anything."""
    truth = {P: pattern[P - LOW] for P in range(LOW, HIGH)}
    asked: list[int] = []

    def meets(P: int) -> bool:
        assert P >= LOW, "below the floor nothing needs to be run"
        asked.append(P)
        return truth.get(P, True)

    found = fewest_bits(meets, start=start, floor=LOW, ceiling=HIGH, limit=100, most_runs=100)
    met = [P for P in range(LOW, 100) if truth.get(P, True)]
    assert found.complete and found.not_run == []
    assert found.fewest == met[0]
    assert found.always == max([P + 1 for P in range(LOW, HIGH) if not truth[P]], default=LOW)
    assert len(asked) == len(set(asked)) and set(found.runs) == set(asked)
    assert found.runs[found.fewest] and found.runs.get(found.fewest - 1, False) is False


@given(st.integers(LOW, 60), st.integers(2, 12), st.integers(0, 60))
def test_a_short_search_says_what_it_left_out(boundary: int, most_runs: int, start: int) -> None:
    """A monotone pattern with few runs: the boundary is exact (both sides were run), the rest is reported as not run."""
    found = fewest_bits(lambda P: boundary <= P, start=start, floor=LOW, ceiling=90, limit=200, most_runs=most_runs)
    assert found.fewest == boundary
    assert boundary == LOW or found.runs[boundary - 1] is False
    left = {P for first, last in found.not_run for P in range(first, last + 1)}
    assert left == set(range(LOW, 90)) - set(found.runs)
    if found.always is not None:
        assert all(P in found.runs for P in range(boundary, 90))


def test_nothing_reaches_it() -> None:
    with pytest.raises(NotReached):
        fewest_bits(lambda P: False, start=10, floor=2, ceiling=None, limit=500, most_runs=40)


def test_without_a_ceiling_nothing_is_claimed_about_more_bits() -> None:
    found = fewest_bits(lambda P: P >= 20, start=30, floor=15, ceiling=None, limit=500, most_runs=40)
    assert found.fewest == 20 and found.always is None and not found.complete
