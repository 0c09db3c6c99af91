"""A printed statement, what carom finds, and the verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Claim:
    """One statement of a paper next to carom's number.

    Args:
        what: the quantity.
        paper: the printed value, or the statement in words.
        carom: the value found.
        agrees: whether the two agree, to the printed digits or the stated tolerance.
        note: what to know: a misprint, an inferred datum, a tolerance.
        corrected: whether carom agrees with the statement after a misprint named in `note` is put right.
    """

    what: str
    paper: float | str
    carom: float | str
    agrees: bool
    note: str = ""
    corrected: bool = False

    @property
    def verdict(self) -> str:
        """In one word."""
        return "differs" if not self.agrees else "corrected" if self.corrected else "agrees"


def number(what: str, paper: float, carom: float, rtol: float, note: str = "") -> Claim:
    """A printed number, agreeing within a relative tolerance."""
    return Claim(what, paper, float(carom), abs(carom - paper) <= rtol * abs(paper), note)


def within(what: str, low: float, high: float, carom: float, note: str = "") -> Claim:
    """A number the paper places in an interval."""
    return Claim(what, f"in [{low:g}, {high:g}]", float(carom), low <= carom <= high, note)


#: An item of a paper: a function without arguments that returns its claims and a matplotlib figure (or None).
Item = Callable[[], tuple[list[Claim], Any]]
