"""
Tail latency over shards: a simulation with stragglers and hedged requests.

    python -m research.shard_latency

A question is sent to all shards and waits for the slowest. The time of a shard is log-normal with
the median 1. Now and then a request straggles: it takes ten times as long, for example during a
merge or a page fault. With hedging, a shard that has not answered after the 95th percentile of its
usual time is asked a second time, on a replica, and the first answer counts. Times of different
requests are independent, and waiting in queues is not simulated. Writes
research/results/shard_latency.json and shard_latency.svg.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.benchmarks.common import results_folder, save

QUESTIONS = 100_000
SHARDS = (1, 3, 10, 30, 100)
SIGMA = 0.35
STRAGGLERS = 0.01
SLOWDOWN = 10.0
HEDGE_AFTER = 0.95
_PERCENTILES = (50, 95, 99, 99.9)
_ROWS_AT_ONCE = 10_000
_COLORS = {False: "#b5651d", True: "#1d6fb5"}

Times = NDArray[np.float64]


def simulate(
    shards: int, *, hedged: bool, stragglers: float = STRAGGLERS, seed: int = 0
) -> dict[str, Any]:
    """The percentiles of a question's time, and how many more requests hedging sends."""
    rng = np.random.default_rng([seed, shards])
    delay = hedge_delay()
    slowest, sent = [], 0
    for _ in range(0, QUESTIONS, _ROWS_AT_ONCE):
        size = (_ROWS_AT_ONCE, shards)
        times, second = _times(rng, size, stragglers), _times(rng, size, stragglers)
        if hedged:
            late = times > delay
            sent += int(late.sum())
            times = np.where(late, np.minimum(times, delay + second), times)
        slowest.append(times.max(axis=1))
    found = np.concatenate(slowest)
    return {
        "shards": shards,
        "hedged": hedged,
        "stragglers": stragglers,
        **{f"p{name:g}": round(float(np.percentile(found, name)), 2) for name in _PERCENTILES},
        "more requests": round(sent / (QUESTIONS * shards), 4),
    }


def hedge_delay() -> float:
    """The percentile of a request that does not straggle."""
    z = 1.6449  # of the normal distribution at 0.95
    return float(np.exp(SIGMA * z))


def _times(rng: np.random.Generator, size: tuple[int, int], stragglers: float) -> Times:
    times = rng.lognormal(0.0, SIGMA, size)
    return np.where(rng.random(size) < stragglers, SLOWDOWN * times, times)


def main() -> None:
    rows = [simulate(shards, hedged=hedged) for shards in SHARDS for hedged in (False, True)]
    rows += [simulate(shards, hedged=False, stragglers=0.0) for shards in SHARDS]
    figures = {
        "unit": "median time of one shard",
        "questions": QUESTIONS,
        "sigma": SIGMA,
        "stragglers": STRAGGLERS,
        "slowdown": SLOWDOWN,
        "hedge after percentile": 100 * HEDGE_AFTER,
        "rows": rows,
    }
    print(json.dumps(rows, indent=1))
    print(save("shard_latency", figures))
    path = results_folder() / "shard_latency.svg"
    path.write_text(draw(rows), encoding="utf-8")
    print(path)


def draw(rows: list[dict[str, Any]]) -> str:
    """The 99th percentile by the number of shards, as SVG; both axes are logarithmic."""
    width, height, left, bottom, top, right = 600, 340, 60, 50, 20, 170
    highest = 40.0

    def x(shards: float) -> float:
        return left + (width - left - right) * math.log(shards) / math.log(max(SHARDS))

    def y(value: float) -> float:
        return height - bottom - (height - bottom - top) * math.log(value) / math.log(highest)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for value in (1, 2, 5, 10, 20, 40):
        parts.append(
            f'<path d="M{left} {y(value):.1f}H{width - right}" stroke="#ddd"/>'
            f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value}</text>'
        )
    for shards in SHARDS:
        at = height - bottom + 18
        parts.append(f'<text x="{x(shards):.1f}" y="{at}" text-anchor="middle">{shards}</text>')
    for hedged, name in ((False, "without hedging"), (True, "with hedging")):
        for key, dash in (("p99", ""), ("p50", ' stroke-dasharray="4 3"')):
            own = [
                (x(row["shards"]), y(row[key]))
                for row in rows
                if row["hedged"] == hedged and row["stragglers"]
            ]
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in own)
            color = _COLORS[hedged]
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"{dash}/>'
            )
            parts.append(
                f'<text x="{own[-1][0] + 6:.1f}" y="{own[-1][1] + 4:.1f}" fill="{color}">'
                f"{key}, {name}</text>"
            )
    middle = (left + width - right) / 2
    parts.append(f'<text x="{middle}" y="{height - 10}" text-anchor="middle">shards</text>')
    parts.append(
        f'<text x="16" y="{height / 2}" text-anchor="middle" '
        f'transform="rotate(-90 16 {height / 2})">time, in medians of a shard</text>'
    )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    main()
