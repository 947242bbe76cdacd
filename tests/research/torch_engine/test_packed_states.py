from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from askline.training.cascade.cascade_network import CascadeNetwork
from askline.training.packing import PairTemplate, TokenTable, bert_embed, bert_layer, pack
from research.torch_engine.frozen_layers import FrozenEmbedding, FrozenLayer, Sequences, means
from research.torch_engine.packed_states import StateBatch, StateBatches


def flight(first: int, lengths: list[int]) -> StateBatch:
    """Window w's tokens have the states w, w, …"""
    windows, counts = np.arange(first, first + len(lengths)), np.array(lengths)
    starts = torch.tensor([0, *np.cumsum(counts)], dtype=torch.int32)
    states = torch.from_numpy(np.repeat(windows, counts)).float()[:, None]
    return StateBatch(windows, counts, Sequences(starts, max(lengths)), states=states)


def values(of: StateBatch) -> list[float]:
    assert of.states is not None
    found: list[float] = of.states[:, 0].tolist()
    return found


def only(batches: list[StateBatch], kept: list[list[int]], budget: int) -> list[StateBatch]:
    mask = np.array([each for own in kept for each in own], bool)
    return list(StateBatches.of(batches).only(mask, budget).batches)


def test_a_batches_knows_where_its_windows_lie() -> None:
    batches = StateBatches.of([flight(3, [2, 1, 3]), flight(6, [4, 1])])
    assert batches.windows.tolist() == [3, 4, 5, 6, 7]
    assert batches.starts.tolist() == [0, 2, 3, 0, 4]
    assert batches.first.tolist() == [0, 3, 5]
    assert StateBatches.of([]).windows.tolist() == []


def test_some_windows_keep_their_states() -> None:
    (some,) = only([flight(3, [2, 1, 3, 1])], [[0, 1, 1, 0]], 9)
    assert some.windows.tolist() == [4, 5]
    assert some.lengths.tolist() == [1, 3]
    assert values(some) == [4, 5, 5, 5]
    assert some.where.starts.tolist() == [0, 1, 4]
    assert some.where.longest == 3


def test_flights_become_one_while_they_fit() -> None:
    given = [flight(0, [2, 1]), flight(2, [3]), flight(3, [2]), flight(4, [9])]
    found = only(given, [[1, 1], [1], [1], [1]], budget=6)
    assert [each.windows.tolist() for each in found] == [[0, 1, 2], [3], [4]]
    assert values(found[0]) == [0, 0, 1, 2, 2, 2]
    assert found[0].where.starts.tolist() == [0, 2, 3, 6]
    assert found[1:] == given[2:]  # the very same: nothing was copied
    assert given[0].states is None, "what was copied is let go of"


def test_what_is_left_of_several_meets_in_its_order() -> None:
    given = [flight(0, [2, 4, 1]), flight(3, [3, 1]), flight(5, [2]), flight(6, [1, 2])]
    found = only(given, [[0, 1, 1], [0, 1], [0], [1, 0]], budget=6)
    assert [each.windows.tolist() for each in found] == [[1, 2, 4], [6]]
    assert [values(each) for each in found] == [[1, 1, 1, 1, 2, 4], [6]]
    assert [each.where.longest for each in found] == [4, 1]
    assert [each.where.starts.tolist() for each in found] == [[0, 4, 5, 6], [0, 1]]


def test_flights_that_nobody_is_left_of_take_no_room() -> None:
    given = [flight(0, [2]), flight(1, [8, 1]), flight(3, [1])]
    (found,) = only(given, [[0], [1, 0], [0]], budget=5)
    assert (found.windows.tolist(), values(found)) == ([1], [1] * 8)


def test_nobody_left_is_no_flight() -> None:
    assert only([flight(0, [1])], [[0]], 9) == []


def test_means_are_over_each_sequence() -> None:
    states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]])
    where = Sequences(torch.tensor([0, 2, 3], dtype=torch.int32), 2)
    assert means(states, where).tolist() == [[2.0, 3.0], [5.0, 9.0]]
    owners, places = where.owners_and_places()
    assert (owners.tolist(), places.tolist()) == ([0, 0, 1], [0, 1, 0])


@pytest.mark.slow
def test_frozen_layers_compute_what_the_network_computes(
    network: CascadeNetwork, tokenizer: Any
) -> None:
    encoder: Any = network.encoder
    table = TokenTable.of(["who wrote emma ?", "jane austen .", "", "dune is a novel"], tokenizer)
    rows = np.arange(1, 4)
    batch = pack(table, np.zeros_like(rows), rows, PairTemplate.of(tokenizer))
    where = Sequences(batch.starts, batch.longest)
    with torch.inference_mode():
        wanted = bert_embed(encoder, batch)
        found = FrozenEmbedding.of(encoder.embeddings, torch.float32)(batch)
        torch.testing.assert_close(found, wanted)
        for layer in encoder.encoder.layer:
            wanted = bert_layer(layer, wanted, batch)
            found = FrozenLayer.of(layer, torch.float32)(found, where)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
