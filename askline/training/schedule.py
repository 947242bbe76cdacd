"""The slanted triangular learning rate (Howard & Ruder, 2018)."""

from __future__ import annotations

__all__ = ["slanted_triangular"]


def slanted_triangular(
    step: float, total: float, *, rise: float = 0.1, lowest: float = 1 / 32
) -> float:
    """The share of the peak rate at `step` of `total`: up over the first tenth, then down."""
    done = step / total
    height = done / rise if done < rise else (1 - done) / (1 - rise)
    return lowest + (1 - lowest) * height
