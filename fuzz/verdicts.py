"""What became of a case, and which words a user must never read."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass

import carom

RIGHT, REFUSED, WARNED, UNJUDGED = "right", "refused", "warned", "unjudged"
WRONG, FAILED, CRASH, HANG = "WRONG", "FAILED", "CRASH", "HANG"
FINDINGS = (WRONG, FAILED, CRASH, HANG)
MEANING = {
    RIGHT: "agrees with the oracle",
    REFUSED: "a clear error where an error is due",
    WARNED: "disagrees with the oracle, and carom warned",
    UNJUDGED: "too ill-conditioned to judge, or beyond the oracle",
    WRONG: "disagrees with the oracle, silently, or accepts what must be refused",
    FAILED: "an error on an ordinary problem",
    CRASH: "an error in other words than carom's",
    HANG: "no end within the limit",
}
_RAW = re.compile(
    r"Tracer|jvp called|incompatible shapes|tangent shapes|scan body|cannot reshape|'NoneType' object|object is not "
    r"callable|missing \d+ required positional|unexpected keyword|carry input|carry output|XlaRuntime|jaxlib|HDF5|"
    r"h5py|unsupported operand|could not convert string|has no attribute|not subscriptable|index \d+ is out of bounds|"
    r"setting an array element|inhomogeneous shape|broadcast|dtype|Unable to|float\(\) argument|must be real number|"
    r"can't convert|iteration over|abstract array|ufunc|zero-size array|list index|too large to convert"
)
_ASIDE = re.compile(r"\((?:[^()]|\([^()]*\))*\)")
_ROLES = "potential|forces?|stop|gap|slip|slip_velocity|limit|mass|constraints|kinematics"
_USERS = re.compile(rf"({_ROLES})\b[^:]{{0,40}}: ")


@dataclass(frozen=True)
class Verdict:
    """A class and one line about it."""

    kind: str
    detail: str = ""


def of_error(error: BaseException, *, due: bool) -> Verdict:
    """The verdict on an exception; `due` says whether an error had to come."""
    words = " ".join(str(error).split())
    line = f"{type(error).__name__}: {words[:240]}"
    if _USERS.match(words):  # raised by the user's own function, passed on with its name
        return Verdict(REFUSED if due else FAILED, line)
    own = isinstance(error, (ValueError, TypeError, carom.SimulationError))
    said = _ASIDE.sub("", words)  # what a library says may follow in brackets
    if not own or _RAW.search(said) or len(words.split()) < 4:
        return Verdict(CRASH, f"{line} [{_where(error)}]")
    return Verdict(REFUSED if due else FAILED, line)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/carom" in f.filename] or frames[-1:]
    return f"{ours[-1].filename.rpartition('/')[2]}:{ours[-1].lineno}" if ours else "?"
