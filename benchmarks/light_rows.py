"""
The rows of Cosinet's tables 4 (WikiQA) and 5 (SQuAD-sent), with the recipe of each.

Recipes were chosen by five-fold cross-validation over WikiQA's train and dev questions; no test set
had a part in it. Published figures: MAP and MRR on WikiQA, P@1 and MRR on SQuAD-sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from askline.models.layouts import (
    CompareAggregateLayout,
    CosinetLayout,
    Layout,
    ListLayerKind,
    RelationalCNNLayout,
)
from askline.training import Recipe

__all__ = ["BASELINES", "SQUAD", "SQUAD_TRAIN", "WIKIQA", "Baseline", "Row"]


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    label: str
    layout: Layout
    recipe: Recipe
    published: tuple[float, float] | None = None
    adapt: Recipe | None = None
    """For SQuAD rows: the weights go on to WikiQA with this, as a row of their own there."""
    cost: float = 1.0
    """How long it takes beside the others, roughly; short ones are started first."""

    @property
    def encoding(self) -> Layout:
        """The layout to encode for: what reads the list has no part in it, so all share one."""
        if isinstance(self.layout, (CosinetLayout, CompareAggregateLayout)):
            return replace(self.layout, list_layer="none")
        return self.layout


@dataclass(frozen=True)
class Baseline:
    """What the paper prints for rankers without training; ours are in results/lexical.json."""

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

# Rates by cross-validation (docs/light-rankers.md); all else is alike.
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
_COSINET_LISTS = {
    "rnn": (74.78, 76.35),
    "birnn": (75.62, 77.13),
    "lstm": (74.31, 75.78),
    "bilstm": (75.32, 76.85),
}
_CA_LISTS = {
    "rnn": (74.73, 76.35),
    "birnn": (74.97, 76.44),
    "lstm": (74.82, 76.42),
    "bilstm": (74.27, 75.74),
}

WIKIQA: tuple[Row, ...] = (
    Row("Cosinet", COSINET, POINT, (70.95, 72.86)),
    Row("Cosinet list", COSINET, ALONE, (71.22, 73.07)),
    *(
        Row(
            f"Cosinet list + {name}", replace(COSINET, list_layer=kind), LISTS, _COSINET_LISTS[kind]
        )
        for kind, name in _NAMES.items()
    ),
    Row("CA", CA, CA_POINT, (72.03, 73.39), cost=5),
    Row("CA list", CA, CA_ALONE, (71.43, 73.55), cost=5),
    *(
        Row(f"CA list + {name}", replace(CA, list_layer=kind), CA_LISTS, _CA_LISTS[kind], cost=5)
        for kind, name in _NAMES.items()
    ),
    Row("Rel-CNN", RelationalCNNLayout(), REL),
    Row("Cosinet list, three channels", RICH, replace(ALONE, dropout=0.2)),
    Row(
        "Cosinet list + BiRNN, three channels",
        replace(RICH, list_layer="birnn"),
        replace(LISTS, dropout=0.2),
    ),
)

# What SQuAD-sent is trained on, SQuAD's own train file not being at hand.
SQUAD_TRAIN = ("squadshifts:train", "squad1:train")

_LONG = Recipe(rate=1e-3, batch=32, epochs=2, dropout=0.2)
_ADAPT = Recipe(rate=5e-4, batch=16, dropout=0.4)
_BI = replace(COSINET, list_layer="birnn")
_CA_LONG = Recipe(rate=5e-4, batch=32, epochs=2)
_CA_ADAPT = Recipe(rate=2e-4, batch=16, dropout=0.2)
_CA_BI = replace(CA, list_layer="birnn")

SQUAD: tuple[Row, ...] = (
    Row("Cosinet", COSINET, replace(_LONG, loss="point", rate=2e-3), (86.18, 91.81), cost=10),
    Row("Cosinet list", COSINET, replace(_LONG, rate=2e-3), (85.12, 91.16), _ADAPT, cost=10),
    Row("Cosinet list + BiRNN", _BI, _LONG, (86.18, 91.97), _ADAPT, cost=12),
    Row("CA", CA, replace(_CA_LONG, loss="point"), (85.71, 91.49), cost=100),
    Row("CA list", CA, _CA_LONG, (85.17, 90.69), _CA_ADAPT, cost=100),
    Row("CA list + BiRNN", _CA_BI, _CA_LONG, (86.32, 92.05), _CA_ADAPT, cost=110),
)
