from __future__ import annotations

import math

import pytest
import torch

from askline.errors import InputError
from askline.training.losses import Objective, list_loss, pair_loss, point_loss
from askline.training.optimizer import slanted_triangular


def test_list_loss_is_the_divergence_from_the_softmax() -> None:
    scores = torch.tensor([0.0, math.log(3), 1.0, 1.0])
    labels = torch.tensor([0.0, 1.0, 1.0, 1.0])
    # First question: -log(3/4). Second: both answers, both as likely, nothing left to learn.
    expected = (-math.log(3 / 4) + 0.0) / 2
    assert list_loss(scores, labels, (2, 2)).item() == pytest.approx(expected, abs=1e-6)


def test_list_loss_of_a_question_without_an_answer_is_zero_without_gradient() -> None:
    scores = torch.tensor([1.0, -2.0], requires_grad=True)
    loss = list_loss(scores, torch.zeros(2), (2,))
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 0.0
    assert scores.grad is not None
    assert scores.grad.tolist() == [0.0, 0.0]


def test_list_loss_gradient_is_finite_with_lists_of_several_lengths() -> None:
    scores = torch.tensor([50.0, -50.0, 3.0], requires_grad=True)
    list_loss(scores, torch.tensor([0.0, 1.0, 1.0]), (2, 1)).backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()


def test_point_loss_is_the_mean_over_pairs() -> None:
    loss = point_loss(torch.zeros(3), torch.tensor([0.0, 1.0, 0.0]))
    assert loss.item() == pytest.approx(math.log(2))


def test_rate_rises_over_a_tenth_and_falls_to_the_end() -> None:
    shares = [slanted_triangular(step / 100) for step in range(100)]
    assert shares[0] == pytest.approx(1 / 32)
    assert max(shares) == shares[10] == 1.0
    assert shares[10:] == sorted(shares[10:], reverse=True)
    assert shares[-1] < 0.05


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
    with pytest.raises(InputError, match="Loss weights must not be negative"):
        Objective(*weights)
