"""Strictness: one knob for people, from the exact posterior to the clearest cases only.

    s in [0, 0.4]:   rejection with gamma = 4^(s / 0.4)                 1 ... 4
    s in (0.4, 1]:   level set with q = 100^(-(s - 0.4) / 0.6)          1 ... 0.01

Accuracy grows with s and diversity falls; s = 0 is p(z | c) itself. Where no draw obeys that a level could be set by,
particles are held to the condition gamma / q times over, 4 ... 400.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ValueRangeError

__all__ = ["Strictness"]

KNEE = 0.4


@dataclass(frozen=True)
class Strictness:
    """A strictness as the (gamma, q) that it stands for; q is None while rejection does the work."""

    gamma: float
    q: float | None

    @classmethod
    def of(cls, s: float) -> Strictness:
        if not 0 <= s <= 1:
            raise ValueRangeError(f"strictness runs from 0 to 1; {s:g} is outside.")
        if s <= KNEE:
            return cls(4 ** (s / KNEE), None)
        return cls(4.0, 100 ** (-(s - KNEE) / (1 - KNEE)))
