"""Licenses of the training data, for the README of a model folder."""

from __future__ import annotations

__all__ = ["LICENCES"]

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
