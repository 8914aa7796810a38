"""Every error the toolkit raises on purpose, each a single clear line."""

from __future__ import annotations


class VerifyError(Exception):
    """Base of all deliberate errors."""


class RequestError(VerifyError):
    """The request or the input is wrong (exit code 2): what, where, and what would be right."""

    def __init__(self, what: str, *, where: str = "", right: str = "") -> None:
        self.what, self.where, self.right = what, where, right
        line = f"{where}: {what}" if where else what
        super().__init__(f"{line}; {right}" if right else line)


class UnsupportedOperation(VerifyError):
    """The arithmetic cannot do what was asked of it (no logarithm, no order, no such weight)."""


class OutOfRange(VerifyError):
    """A logarithm of something not positive, or a division by zero: the construction's bounds do not hold."""


class PrecisionNeeded(VerifyError):
    """A ball is too wide to decide a question; a run at higher precision may decide it."""


class Undecided(VerifyError):
    """A question stayed open at the stated precision limit."""


class RuleBroken(VerifyError):
    """A construction does what the paper's oracle model forbids, and the rule was not waived.

    Attributes: `rule` (its name), `limit` and `needed` (what the rule allows and what the construction wanted).
    """

    def __init__(self, rule: str, limit: int, needed: int, detail: str) -> None:
        self.rule, self.limit, self.needed, self.detail = rule, limit, needed, detail
        super().__init__(f"rule broken: {rule}: {detail} (limit {limit}, needed {needed})")
