"""Arrays of a page: each is written once, as base64 of little-endian numbers, and named by its place in a list."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

_KINDS = {"f8": "<f8", "f4": "<f4", "u1": "u1"}


def single(values: Any) -> np.ndarray:
    """Numbers that are only drawn: 32 bits are enough, and what is too large for them is infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, "<f4")


def packed(data: Any) -> dict[str, Any]:
    """Plain data in which every array stands in the list `arrays` and is replaced by `{"$": place}`."""
    places: dict[tuple[str, bytes], int] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            kind = next((kind for kind, dtype in _KINDS.items() if value.dtype == np.dtype(dtype)), "f8")
            bytes_ = np.ascontiguousarray(value, _KINDS[kind]).tobytes()
            return {"$": places.setdefault((kind, bytes_), len(places))}
        if isinstance(value, dict):
            return {name: plain(entry) for name, entry in value.items()}
        return [plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value

    found = plain(data)
    return found | {"arrays": [[kind, base64.b64encode(bytes_).decode()] for kind, bytes_ in places]}
