"""
The rows of Cosinet's tables 4 (WikiQA) and 5 (SQuAD-sent), with the recipe of each.

Recipes were chosen by five-fold cross-validation over WikiQA's train and dev questions; no test set
had a part in it. Published figures: MAP and MRR on WikiQA, P@1 and MRR on SQuAD-sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from askline.models.light_config import (
    CompareAggregateLayout,
    CosinetLayout,
    Layout,
    ListLayerKind,
    RelationalCNNLayout,
)
from askline.training.light.light_training import Recipe

__all__ = ["BASELINES", "REPORTED", "SQUAD", "SQUAD_TRAIN", "WIKIQA", "Baseline", "Row"]


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    label: str
    layout: Layout
    recipe: Recipe
    published: tuple[float, float] | None = None
    adapt: Recipe | None = None
    """For SQuAD rows: the weights go on to WikiQA with this, as a row of their own there."""
    turn: int = 0
    """Rows with a lower turn are started first."""

    @property
    def encoding(self) -> Layout:
        """The layout to encode for: what reads the list has no part in it, so all share one."""
        if isinstance(self.layout, (CosinetLayout, CompareAggregateLayout)):
            return replace(self.layout, list_layer="none")
        return self.layout


@dataclass(frozen=True)
class Baseline:
    """What the paper prints for rankers without training; ours are in research/results/lexical.json."""

    label: str
    wikiqa: tuple[float, float]
    squad: tuple[float, float]


BASELINES = (
    Baseline("RR", (64.21, 64.26), (30.55, 53.53)),
    Baseline("WO", (51.02, 51.24), (65.48, 77.90)),
    Baseline("WO+RR", (68.25, 69.43), (73.12, 83.60)),
)

COSINET, CA = CosinetLayout(), CompareAggregateLayout()
# What an earlier try found helpful: 6,000 more parameters, and dropout.
RICH = CosinetLayout(channels=("related", "exact", "idf"))

# Rates by cross-validation (research/notes/light-rankers.md); all else is alike.
POINT = Recipe(loss="point", rate=4e-3, batch=4)
ALONE = Recipe(rate=4e-3, batch=4)
LISTS = Recipe(rate=1e-3, batch=16)
CA_POINT = Recipe(loss="point", rate=2e-3, batch=4)
CA_ALONE = Recipe(rate=2e-3, batch=4)
CA_LISTS = Recipe(rate=5e-4, batch=4)
REL = Recipe(loss="point", rate=1e-3, batch=4)

_NAMES: dict[ListLayerKind, str] = {
    "rnn": "RNN",
    "birnn": "BiRNN",
    "lstm": "LSTM",
    "bilstm": "BiLSTM",
}
_COSINET_LISTS: dict[ListLayerKind, tuple[float, float]] = {
    "rnn": (74.78, 76.35),
    "birnn": (75.62, 77.13),
    "lstm": (74.31, 75.78),
    "bilstm": (75.32, 76.85),
}
_CA_LISTS: dict[ListLayerKind, tuple[float, float]] = {
    "rnn": (74.73, 76.35),
    "birnn": (74.97, 76.44),
    "lstm": (74.82, 76.42),
    "bilstm": (74.27, 75.74),
}
REPORTED = {
    "Cosinet list + RNN": (66.08, 60.17),
    "Cosinet list + BiRNN": (66.3, 60.20),
    "Cosinet list + LSTM": (66.9, 61.23),
    "Cosinet list + BiLSTM": (67.4, 61.69),
}
"""What the project report prints for its own training of these rows on WikiQA, MAP and MRR."""


def _lists(
    name: str,
    layout: CosinetLayout | CompareAggregateLayout,
    recipe: Recipe,
    published: Mapping[ListLayerKind, tuple[float, float]],
    *,
    adapt: Recipe | None = None,
    turn: int = 0,
    later: int = 0,
) -> tuple[Row, ...]:
    """A row for each layer over the list; those without a published figure come `later`."""
    return tuple(
        Row(
            f"{name} list + {label}",
            replace(layout, list_layer=kind),
            recipe,
            published.get(kind),
            adapt,
            turn if kind in published else later,
        )
        for kind, label in _NAMES.items()
    )


WIKIQA: tuple[Row, ...] = (
    Row("Cosinet", COSINET, POINT, (70.95, 72.86)),
    Row("Cosinet list", COSINET, ALONE, (71.22, 73.07)),
    *_lists("Cosinet", COSINET, LISTS, _COSINET_LISTS),
    Row("CA", CA, CA_POINT, (72.03, 73.39), turn=1),
    Row("CA list", CA, CA_ALONE, (71.43, 73.55), turn=1),
    *_lists("CA", CA, CA_LISTS, _CA_LISTS, turn=1),
    Row("Rel-CNN", RelationalCNNLayout(), REL),
    Row("Cosinet list, three channels", RICH, replace(ALONE, dropout=0.2)),
    Row(
        "Cosinet list + BiRNN, three channels",
        replace(RICH, list_layer="birnn"),
        replace(LISTS, dropout=0.2),
    ),
)

# What SQuAD-sent is trained on, SQuAD's own train file not being at hand.
SQUAD_TRAIN = "squadshifts:train+squad1:train"

# Chosen by research/results/light_choosing.json, as are the rates of adaptation.
_LONG = Recipe(rate=2e-3, batch=32, epochs=2, dropout=0.2)
_ADAPT = Recipe(rate=2e-3, batch=16, dropout=0.4)
_CA_LONG = Recipe(rate=5e-4, batch=32, epochs=2)
_CA_ADAPT = Recipe(rate=1e-3, batch=16, dropout=0.2)
# Where the list is read, adaptation is slower.
_ADAPT_LISTS, _CA_ADAPT_LISTS = replace(_ADAPT, rate=5e-4), replace(_CA_ADAPT, rate=2e-4)
_COSINET_SQUAD: dict[ListLayerKind, tuple[float, float]] = {"birnn": (86.18, 91.97)}
_CA_SQUAD: dict[ListLayerKind, tuple[float, float]] = {"birnn": (86.32, 92.05)}

SQUAD: tuple[Row, ...] = (
    Row(
        "Cosinet",
        COSINET,
        replace(_LONG, loss="point"),
        (86.18, 91.81),
        replace(_ADAPT, loss="point"),
        turn=2,
    ),
    Row("Cosinet list", COSINET, _LONG, (85.12, 91.16), _ADAPT, turn=2),
    *_lists("Cosinet", COSINET, _LONG, _COSINET_SQUAD, adapt=_ADAPT_LISTS, turn=2, later=6),
    Row(
        "CA",
        CA,
        replace(_CA_LONG, loss="point"),
        (85.71, 91.49),
        replace(_CA_ADAPT, loss="point"),
        turn=2,
    ),
    Row("CA list", CA, _CA_LONG, (85.17, 90.69), _CA_ADAPT, turn=2),
    *_lists("CA", CA, _CA_LONG, _CA_SQUAD, adapt=_CA_ADAPT_LISTS, turn=2, later=7),
    Row(
        "Rel-CNN",
        RelationalCNNLayout(),
        replace(_LONG, loss="point", rate=1e-3),
        adapt=replace(_ADAPT, loss="point", rate=1e-3),
        turn=2,
    ),
    Row(
        "Cosinet list + BiRNN, three channels",
        replace(RICH, list_layer="birnn"),
        _LONG,
        adapt=_ADAPT_LISTS,
        turn=2,
    ),
)
