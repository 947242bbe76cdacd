"""The README of a trained cascade: data and their licences, measures by depth, the command."""

from __future__ import annotations

from ..card import LICENCES
from .making import Made, Making, Sets

__all__ = ["card"]


def card(made: Made, how: Making, sets: Sets, *, start: str, teacher: str, command: str) -> str:
    """Markdown. Measures are those of each seed after its last epoch."""
    shape = how.shape
    used = [*sets.transfer, *filter(None, [sets.adapt])]
    weights = sum(weight.numel() for weight in made.network.parameters())
    lines = [
        "# cascade",
        "",
        f"- Classifiers after layers {', '.join(map(str, shape.depths))}, head `{shape.head}`"
        f"{', and a reader' if shape.reader else ''}: {weights:,} parameters",
        f"- Started from: {start}" + (f"; taught by: {teacher}" if teacher else ""),
        *(
            ["- Full depth was held to the start, whose own classifier it is"]
            if how.anchored
            else []
        ),
        f"- Seeds: {', '.join(map(str, how.seeds))}"
        f"{' (the mean of their weights)' if len(how.seeds) > 1 else ''}",
        "- Trained on:",
        *(f"  - {name} ({_licence(name)})" for name in used),
        "",
        "The weights are under the licences of the data, and of the start, that they come from.",
        "",
        "```",
        command,
        "```",
        "",
        *_measures(made, sets.dev),
    ]
    return "\n".join(lines)


def _licence(name: str) -> str:
    return LICENCES.get(name.partition(":")[0], "see the data")


def _measures(made: Made, dev: str | None) -> list[str]:
    rows = {seed: epochs[-1].dev for seed, epochs in made.history.items()}
    names = list(next(iter(rows.values())))
    if not names:
        return []
    header = [dev or "dev", *(f"seed {seed}" for seed in rows)]
    table = [header, ["---"] * len(header)]
    table += [[name, *(f"{row[name]:.2f}" for row in rows.values())] for name in names]
    return [f"| {' | '.join(row)} |" for row in table] + [""]
