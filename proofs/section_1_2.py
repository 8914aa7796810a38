"""Section 1.2: the lower bound on oracle calls, as the arithmetic of an implication.

**Statement.** Simulating attention takes `(N/M)^(2-o(1))` oracle calls in the worst case, from the hardness of attention.

The implication, with the number of calls written C (the paper writes T both for it and for the large transformer: R9). An oracle
call on M tokens of dimension `d = O(log N)` runs in time `c M^2 polylog(N)`. If C calls simulated attention on N tokens, then attention would be computed
in time `C c M^2 polylog(N)`. Under the hardness assumption that time is at least `N^(2-delta)` for every delta > 0 and large N, so
`C >= N^(2-delta) / (c M^2 polylog N)`. Writing exponents to base N, `C = N^kappa`, `M = N^mu`, `c polylog(N) = N^epsilon`:

    kappa >= 2 - delta - 2 mu - epsilon = 2 (1 - mu) - (delta + epsilon),

and `(N/M)^2 = N^(2 (1 - mu))`. For mu bounded away from 1 this is `(N/M)^(2-o(1))`; for M = N^(1-o(1)) it says nothing, because `(N/M)^2` itself is
then `N^o(1)`. With L' layers and H' heads a call costs L'H' times as much, which gives `HL/(H'L')` when the large transformer's HL heads are independent.

What is proved here is the implication. Its premise is an assumption, and so is its conclusion.
"""

from __future__ import annotations

from fractions import Fraction

from proofs.registry import REGISTRY
from verify.claims.claim import Claim
from verify.claims.verdict import Outcome, Scope, Status

LOWER_BOUND = REGISTRY.add(
    Claim(
        "1.2",
        "Lower bound on oracle calls",
        "Simulating attention takes (N/M)^(2-o(1)) oracle calls in the worst case, from the hardness of attention.",
        "Section 1.2",
    )
)
R9 = REGISTRY.add(
    Claim(
        "R9",
        "T used twice",
        "Section 1.2 uses T both for the number of oracle calls and for the large transformer.",
        "Review, minor comment 5",
        kind="comment",
    )
)


def least_exponent(mu: Fraction, delta: Fraction, epsilon: Fraction) -> Fraction:
    """The least kappa allowed when N^kappa calls of time N^(2 mu + epsilon) must take time N^(2 - delta)."""
    return 2 - delta - (2 * mu + epsilon)


@LOWER_BOUND.check(
    "printed",
    "integers",
    name="implication",
    predicate="total time N^(kappa + 2 mu + epsilon) >= N^(2 - delta) exactly when kappa >= 2(1 - mu) - (delta + epsilon)",
    implies="if attention needs N^(2-o(1)) time, then (N/M)^(2-o(1)) calls are needed, for M at most N^(1-Omega(1))",
)
def implication() -> Outcome:
    """The inequality is linear in the exponents: equality at `least_exponent`, and a smaller kappa fails, on a grid of rationals."""
    steps = [Fraction(k, 12) for k in range(12)]
    small = [Fraction(1, 100), Fraction(1, 7), Fraction(0)]
    done = 0
    for mu in steps:
        for delta in small:
            for epsilon in small:
                kappa = least_exponent(mu, delta, epsilon)
                enough = kappa + 2 * mu + epsilon >= 2 - delta
                below = kappa - Fraction(1, 10**6) + 2 * mu + epsilon >= 2 - delta
                if not enough or below or kappa != 2 * (1 - mu) - (delta + epsilon):
                    return Outcome(Status.REFUTED, Scope.instance(), "exponents", f"mu = {mu}", f"kappa = {kappa}")
                done += 1
    return Outcome(
        Status.PROVED,
        Scope("every size: a linear identity in the exponents; recomputed on a grid"),
        "the exponents of calls, length and time to base N",
        f"{done} rational triples (mu, delta, epsilon)",
        "the implication holds; it is empty where M = N^(1-o(1))",
        {"checked": done},
    )


@LOWER_BOUND.check(
    "printed",
    "integers",
    name="conclusion",
    predicate="attention needs time N^(2-o(1)), and an oracle call takes time M^2 polylog(N)",
    implies="(N/M)^(2-o(1)) oracle calls are needed",
    expects=Status.ASSUMED,
    assumes=("hardness of attention",),
)
def conclusion() -> Outcome:
    """The premise is a hypothesis of complexity theory; nothing here proves it."""
    return Outcome(
        Status.ASSUMED,
        Scope("conditional: worst case, N to infinity"),
        "the lower bound itself",
        "bounded entries large enough for the hardness result",
        "conditional on the hardness of attention; without it, only the covering bound (see the claim `covering`) stands",
    )


@R9.check(
    "printed",
    "integers",
    predicate="with the calls renamed C, every formula of the section keeps its meaning",
    implies="the ambiguity is one of notation only",
    expects=Status.ASSUMED,
    assumes=("text of the paper",),
)
def notation() -> Outcome:
    """The module's derivation uses C for calls throughout and needs no other change; that the paper writes T is its text."""
    return Outcome(
        Status.ASSUMED,
        Scope("the wording of Section 1.2"),
        "the symbol T",
        "the paper's text",
        "renaming the number of calls removes the ambiguity; the derivation above is written that way",
    )
