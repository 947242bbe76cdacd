from __future__ import annotations

import pytest
import torch

from askline.errors import InputError
from askline.training.checkpoint import average_weights, interpolate_weights

A = {"weight": torch.tensor([0.0, 2.0]), "places": torch.tensor([0, 1])}
B = {"weight": torch.tensor([4.0, 4.0]), "places": torch.tensor([0, 1])}


def test_average_is_the_mean_of_trained_tensors() -> None:
    found = average_weights([A, B])
    assert found["weight"].tolist() == [2.0, 3.0]
    assert found["places"].tolist() == [0, 1]


def test_average_takes_shares() -> None:
    assert average_weights([A, B], [0.25, 0.75])["weight"].tolist() == [3.0, 3.5]


@pytest.mark.parametrize(("share", "weight"), [(0, [0.0, 2.0]), (0.5, [2.0, 3.0]), (1, [4.0, 4.0])])
def test_blend_goes_from_start_to_trained(share: float, weight: list[float]) -> None:
    assert interpolate_weights(A, B, share)["weight"].tolist() == weight


def test_averaging_does_not_change_the_states() -> None:
    interpolate_weights(A, B, 0.3)
    assert A["weight"].tolist() == [0.0, 2.0]


def test_states_that_cannot_be_averaged_are_refused() -> None:
    with pytest.raises(InputError, match="at least one state"):
        average_weights([])
    with pytest.raises(InputError, match="a share for each of 2 states, got 1"):
        average_weights([A, B], [1.0])
    with pytest.raises(InputError, match="same network"):
        average_weights([A, {"weight": torch.zeros(2)}])
    with pytest.raises(InputError, match=r"share must be from 0 to 1, got 1\.5"):
        interpolate_weights(A, B, 1.5)
