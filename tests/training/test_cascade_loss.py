from __future__ import annotations

import pytest
import torch

from askline.errors import InputError
from askline.training.losses import (
    CascadeObjective,
    ListLabels,
    list_loss,
    point_loss,
    segment_log_softmax,
)

OWNERS = torch.tensor([0, 0, 0, 1, 1])
LABELS = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0])
SCORES = torch.tensor([[0.5, 1.0, -1.0, 0.0, 2.0], [2.0, 0.1, -3.0, -0.5, 0.2]])
LISTS = ListLabels(LABELS, OWNERS, 2)


def test_segment_log_softmax_equals_log_softmax_per_owner() -> None:
    found = segment_log_softmax(SCORES, OWNERS, 2)
    expected = torch.cat([SCORES[:, :3].log_softmax(1), SCORES[:, 3:].log_softmax(1)], 1)
    assert torch.allclose(found, expected, atol=1e-6)


def test_log_shares_stay_finite() -> None:
    huge = torch.tensor([1e4, -1e4, 0.0], requires_grad=True)
    found = segment_log_softmax(huge, torch.tensor([0, 0, 1]), 3)  # the last owner has nothing
    found.sum().backward()  # type: ignore[no-untyped-call]
    assert torch.isfinite(found).all()
    assert huge.grad is not None
    assert torch.isfinite(huge.grad).all()


def test_without_distillation_it_is_the_sum_of_the_labels_losses() -> None:
    objective = CascadeObjective(early=0.25, distil=0.0, point=0.3)
    hard = [list_loss(row, LABELS, [3, 2]) + 0.3 * point_loss(row, LABELS) for row in SCORES]
    assert torch.allclose(objective(SCORES, LISTS), hard[1] + 0.25 * hard[0], atol=1e-6)


def test_distillation_loss_is_zero_if_classifiers_agree() -> None:
    objective = CascadeObjective(early=1.0, distil=1.0, teach=1.0)
    same = SCORES[1:].expand(2, -1)
    lists = LISTS._replace(teacher=SCORES[1])
    assert objective(same, lists).abs() < 1e-6
    assert objective(SCORES, lists) > 0.01


def test_the_last_classifier_does_not_learn_from_the_early_ones() -> None:
    scores = SCORES.clone().requires_grad_()
    objective = CascadeObjective(early=1.0, distil=1.0, point=0.0)
    (objective(scores, LISTS) - CascadeObjective(early=0.0, point=0.0)(scores, LISTS)).backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    assert scores.grad[0].abs().sum() > 0
    assert scores.grad[1].abs().sum() < 1e-6


def test_early_classifiers_learn_from_teacher_and_last_classifier() -> None:
    lists = LISTS._replace(teacher=SCORES[0])
    objective = CascadeObjective(early=1.0, distil=1.0, teach=0.0, from_teacher=1.0)
    last = CascadeObjective(early=0.0, teach=0.0)(SCORES, LISTS)
    assert torch.allclose(objective(SCORES, lists), last, atol=1e-6)


def test_anchor_loss_is_the_relative_distance_to_the_teacher() -> None:
    teacher = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    objective = CascadeObjective(anchor=10.0)
    assert objective.anchor_loss(teacher, teacher) == 0
    off = teacher + torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    assert torch.allclose(objective.anchor_loss(off, teacher), torch.tensor(10 * (1 / 25) / 2))


def test_drawn_takes_one_classifier() -> None:
    objective = CascadeObjective("drawn", point=0.0)
    expected = {round(float(list_loss(row, LABELS, [3, 2])), 5) for row in SCORES}
    torch.manual_seed(0)
    found = {round(float(objective(SCORES, LISTS)), 5) for _ in range(20)}
    assert found == expected


def test_questions_without_an_answer_have_only_a_point_loss() -> None:
    lists = ListLabels(torch.zeros(5), OWNERS, 2)
    objective = CascadeObjective(early=0.0, point=1.0)
    assert torch.allclose(objective(SCORES, lists), point_loss(SCORES[1], torch.zeros(5)))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("kind", "all", "'joint' or 'drawn'"),
        ("distil", 1.5, "from 0 to 1"),
        ("early", -1.0, "must not be negative"),
        ("anchor", -1.0, "must not be negative"),
        ("temperature", 0.0, "must be positive"),
    ],
)
def test_wrong_weights_are_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CascadeObjective(**{name: value})  # type: ignore[arg-type]
