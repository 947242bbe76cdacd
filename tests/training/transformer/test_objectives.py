from __future__ import annotations

import math

import pytest
import torch

from askline.errors import InputError
from askline.training.losses import list_loss, point_loss
from askline.training.transformer.objectives import Objective, pair_loss

SCORES = torch.tensor([2.0, -1.0, 0.5, 0.0, 1.0])
LABELS = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0])
SIZES = [3, 2]


def test_pair_loss_by_hand() -> None:
    first = (math.log1p(math.exp(-3.0)) + math.log1p(math.exp(-1.5))) / 2
    second = math.log1p(math.exp(1.0))
    assert pair_loss(SCORES, LABELS, SIZES).item() == pytest.approx((first + second) / 2)


def test_pair_loss_of_questions_with_one_kind_of_label_is_zero() -> None:
    assert pair_loss(SCORES, torch.zeros(5), SIZES).item() == 0.0


def test_objective_is_the_weighted_sum() -> None:
    value = Objective(point=0.5, list=2.0, pair=3.0)(SCORES, LABELS, SIZES)
    parts = (
        0.5 * point_loss(SCORES, LABELS)
        + 2 * list_loss(SCORES, LABELS, SIZES)
        + 3 * pair_loss(SCORES, LABELS, SIZES)
    )
    assert value.item() == pytest.approx(parts.item())


@pytest.mark.parametrize("weights", [(0.0, 0.0, 0.0), (-1.0, 1.0, 1.0)], ids=["none", "negative"])
def test_objective_refuses(weights: tuple[float, float, float]) -> None:
    with pytest.raises(InputError, match="Loss weights must be 0 or more"):
        Objective(*weights)
