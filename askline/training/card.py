"""The README of a trained model folder: data, licence, measures, and how to make it again."""

from __future__ import annotations

from .loop import Trained
from .modules import parameter_count

__all__ = ["card"]

LICENCES = {
    "wikiqa": "Microsoft Research Data License: for research, not for shipping",
    "trecqa": "none stated (newswire): for measuring only",
    "squadshifts": "CC BY 4.0",
    "squad1": "CC BY-SA 4.0",
    "squad2": "CC BY-SA 4.0",
    "squad-pairs": "CC BY-SA 4.0",
    "selqa": "Apache-2.0",
    "piaf": "open licence (Etalab)",
    "fquad": "CC BY-NC-SA 3.0: for measuring only",
}


def card(trained: Trained, *, dev: str | None, command: str, vectors: str) -> str:
    """Markdown. The licence is that of the data, where the data's name is known."""
    licence = LICENCES.get(trained.on.partition(":")[0], "that of the data it was trained on")
    lines = [
        f"# {trained.layout.kind}",
        "",
        f"- Network: `{trained.layout}`, {parameter_count(trained.network):,} parameters",
        f"- Trained on: {trained.on}, {trained.seconds:.1f} s",
        f"- Licence of that data: {licence}",
        f"- Word vectors (frozen): {vectors}",
        f"- Recipe: `{trained.recipe}`",
    ]
    if command:
        lines += ["", "```", command, "```"]
    return "\n".join([*lines, "", *_measures(trained, dev)])


def _measures(trained: Trained, dev: str | None) -> list[str]:
    names = list(trained.history[-1].dev) if trained.history else []
    if not names:
        return []
    rows = [
        [str(epoch.number), f"{epoch.loss:.4f}", *(f"{epoch.dev[name]:.2f}" for name in names)]
        for epoch in trained.history
    ]
    header = ["epoch", "loss", *(f"{name} on {dev or 'dev'}" for name in names)]
    rule = ["---"] * len(header)
    return [f"| {' | '.join(row)} |" for row in [header, rule, *rows]] + [""]
