from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install '.[train]'")

from askline.training.losses import list_loss, point_loss  # noqa: E402
from askline.training.schedule import slanted_triangular  # noqa: E402


def test_list_loss_is_the_divergence_from_the_softmax() -> None:
    scores = torch.tensor([0.0, math.log(3), 1.0, 1.0])
    labels = torch.tensor([0.0, 1.0, 1.0, 1.0])
    # First question: -log(3/4). Second: both answers, both as likely, nothing left to learn.
    expected = (-math.log(3 / 4) + 0.0) / 2
    assert list_loss(scores, labels, (2, 2)).item() == pytest.approx(expected, abs=1e-6)


def test_list_loss_of_a_question_without_an_answer_is_zero_and_teaches_nothing() -> None:
    scores = torch.tensor([1.0, -2.0], requires_grad=True)
    loss = list_loss(scores, torch.zeros(2), (2,))
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 0.0
    assert scores.grad.tolist() == [0.0, 0.0]


def test_list_loss_gradient_is_finite_with_lists_of_several_lengths() -> None:
    scores = torch.tensor([50.0, -50.0, 3.0], requires_grad=True)
    list_loss(scores, torch.tensor([0.0, 1.0, 1.0]), (2, 1)).backward()  # type: ignore[no-untyped-call]
    assert torch.isfinite(scores.grad).all()


def test_point_loss_is_the_mean_over_pairs() -> None:
    loss = point_loss(torch.zeros(3), torch.tensor([0.0, 1.0, 0.0]))
    assert loss.item() == pytest.approx(math.log(2))


def test_rate_rises_over_a_tenth_and_falls_to_the_end() -> None:
    shares = [slanted_triangular(step, 100) for step in range(100)]
    assert shares[0] == pytest.approx(1 / 32)
    assert max(shares) == shares[10] == 1.0
    assert shares[10:] == sorted(shares[10:], reverse=True)
    assert shares[-1] < 0.05
