"""What `light_choosing` compares."""

from __future__ import annotations

from dataclasses import dataclass, replace

from askline.models.light_config import (
    CompareAggregateLayout,
    CosinetLayout,
    Layout,
    RelationalCNNLayout,
)
from askline.training.light.light_training import Recipe

__all__ = ["CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """A layout, trained on the SQuAD-like sets by `first` where given, then by each of `then`."""

    label: str
    layout: Layout
    first: Recipe | None = None
    then: tuple[Recipe, ...] = ()

    @property
    def encoding(self) -> Layout:
        """The layout to encode for, which the layer over the list has no part in."""
        if isinstance(self.layout, (CosinetLayout, CompareAggregateLayout)):
            return replace(self.layout, list_layer="none")
        return self.layout


_ALONE, _CA = CosinetLayout(), CompareAggregateLayout()
_BI, _CA_BI = replace(_ALONE, list_layer="birnn"), replace(_CA, list_layer="birnn")
_RICH = replace(_BI, channels=("related", "exact", "idf"))
_LONG = Recipe(rate=1e-3, batch=32, epochs=2, dropout=0.2)
_ADAPT = Recipe(rate=5e-4, batch=16, dropout=0.4)


def _rates(recipe: Recipe, *rates: float) -> tuple[Recipe, ...]:
    return tuple(replace(recipe, rate=rate) for rate in rates)


CASES: tuple[Case, ...] = (
    Case("Cosinet list + BiRNN, transfer", _BI, _LONG, _rates(_ADAPT, 2.5e-4, 5e-4)),
    Case(
        "CA list + BiRNN, transfer",
        _CA_BI,
        replace(_LONG, rate=5e-4, dropout=0.0),
        _rates(replace(_ADAPT, dropout=0.2), 1e-4, 2e-4, 5e-4),
    ),
    Case(
        "CA list, transfer",
        _CA,
        replace(_LONG, rate=5e-4, dropout=0.2),
        _rates(replace(_ADAPT, dropout=0.2), 2e-4, 5e-4, 1e-3),
    ),
    Case(
        "CA point, transfer",
        _CA,
        replace(_LONG, loss="point", rate=5e-4, dropout=0.2),
        _rates(replace(_ADAPT, loss="point", dropout=0.2), 2e-4, 5e-4, 1e-3),
    ),
    Case(
        "Cosinet list, transfer",
        _ALONE,
        replace(_LONG, rate=2e-3),
        _rates(_ADAPT, 5e-4, 1e-3, 2e-3),
    ),
    Case(
        "Cosinet point, transfer",
        _ALONE,
        replace(_LONG, loss="point", rate=2e-3),
        _rates(replace(_ADAPT, loss="point"), 5e-4, 1e-3, 2e-3),
    ),
    Case(
        "Rel-CNN, transfer",
        RelationalCNNLayout(),
        replace(_LONG, loss="point"),
        _rates(replace(_ADAPT, loss="point"), 5e-4, 1e-3),
    ),
    Case(
        "CA list + BiRNN, rate 1e-3, dropout 0.2",
        _CA_BI,
        _LONG,
        _rates(replace(_ADAPT, dropout=0.2), 2e-4, 5e-4),
    ),
    Case(
        "Cosinet list + BiRNN, dropout 0.4, 4 epochs",
        _BI,
        replace(_LONG, epochs=4, dropout=0.4),
        _rates(_ADAPT, 5e-4),
    ),
    Case("Cosinet list + BiRNN, rate 2e-3", _BI, replace(_LONG, rate=2e-3), _rates(_ADAPT, 5e-4)),
    Case(
        "Cosinet list + BiRNN, rate 5e-4, batch 16",
        _BI,
        replace(_LONG, rate=5e-4, batch=16),
        _rates(_ADAPT, 5e-4),
    ),
    Case(
        "Cosinet point, dropout 0.4, 3 epochs",
        _ALONE,
        replace(_LONG, loss="point", rate=2e-3, dropout=0.4, epochs=3),
    ),
    Case("Cosinet list + BiRNN, three channels", _RICH, _LONG, _rates(_ADAPT, 5e-4)),
    Case(
        "Cosinet list + BiRNN, three channels, dropout 0.4, 4 epochs",
        _RICH,
        replace(_LONG, epochs=4, dropout=0.4),
        _rates(_ADAPT, 5e-4),
    ),
    Case("CA point, rate 1e-3", _CA, replace(_LONG, loss="point", dropout=0.2)),
    Case("CA list, rate 1e-3", _CA, _LONG),
    Case("Rel-CNN, rate 2e-3", RelationalCNNLayout(), replace(_LONG, loss="point", rate=2e-3)),
    Case(
        "Cosinet list + BiRNN, plain",
        _BI,
        None,
        (Recipe(), Recipe(rate=2e-4, batch=1), Recipe(dropout=0.2), Recipe(rate=5e-4, batch=8)),
    ),
    Case(
        "Cosinet list + BiRNN, plain, three channels", _RICH, None, (Recipe(), Recipe(dropout=0.2))
    ),
    Case(
        "Cosinet list + BiRNN, plain, vectors of length 3",
        replace(_BI, vector_scale=3.0),
        None,
        (Recipe(),),
    ),
    Case("Cosinet list, plain", _ALONE, None, _rates(Recipe(batch=4), 1e-3, 2e-3, 4e-3)),
    Case(
        "Cosinet point, plain",
        _ALONE,
        None,
        _rates(Recipe(loss="point", batch=4), 1e-3, 2e-3, 4e-3),
    ),
    Case("CA list, plain", _CA, None, _rates(Recipe(batch=4), 5e-4, 1e-3, 2e-3)),
    Case("CA point, plain", _CA, None, _rates(Recipe(loss="point", batch=4), 5e-4, 1e-3, 2e-3)),
    Case("CA list + BiRNN, plain", _CA_BI, None, _rates(Recipe(batch=4), 2.5e-4, 5e-4, 1e-3)),
    Case(
        "CA list + BiRNN, plain, vectors of length 1",
        replace(_CA_BI, vector_scale=1.0),
        None,
        _rates(Recipe(batch=4), 5e-4),
    ),
    Case(
        "Rel-CNN, plain",
        RelationalCNNLayout(),
        None,
        _rates(Recipe(loss="point", batch=4), 5e-4, 1e-3, 2e-3),
    ),
)
