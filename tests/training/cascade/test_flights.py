from __future__ import annotations

from typing import Any

import numpy as np
import torch

from askline.training.cascade.flights import Flight, merged
from askline.training.cascade.network import CascadeNetwork
from askline.training.packed.bert import bert_embed, bert_layer
from askline.training.packed.frozen import FrozenEmbedding, FrozenLayer, Sequences, means
from askline.training.packed.packing import TokenTable, pack
from askline.training.packed.templates import PairTemplate

CPU = torch.device("cpu")


def flight(first: int, lengths: list[int], *, embedded: bool = True) -> Flight:
    """Window w's tokens have the states w, w, …"""
    windows, counts = np.arange(first, first + len(lengths)), np.array(lengths)
    states = torch.from_numpy(np.repeat(windows, counts)).float()[:, None]
    return Flight(windows, counts, CPU, states=states if embedded else None)


def values(of: Flight) -> list[float]:
    assert of.states is not None
    found: list[float] = of.states[:, 0].tolist()
    return found


def test_some_windows_keep_their_states() -> None:
    some = flight(3, [2, 1, 3, 1]).only(np.array([False, True, True, False]), None)
    assert some.windows.tolist() == [4, 5]
    assert values(some) == [4, 5, 5, 5]
    assert some.where.starts.tolist() == [0, 1, 4]
    assert some.where.longest == 3


def test_flights_become_one_while_they_fit() -> None:
    found = merged([flight(0, [2, 1]), flight(2, [3]), flight(3, [2]), flight(4, [9])], budget=6)
    assert [each.windows.tolist() for each in found] == [[0, 1, 2], [3], [4]]
    assert values(found[0]) == [0, 0, 1, 2, 2, 2]
    assert found[0].where.starts.tolist() == [0, 2, 3, 6]


def test_what_is_not_embedded_stays_by_itself() -> None:
    flights = [flight(0, [1], embedded=False), flight(1, [1]), flight(2, [1], embedded=False)]
    assert merged(flights, budget=9) == flights


def test_means_are_over_each_sequence() -> None:
    states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]])
    where = Sequences(torch.tensor([0, 2, 3], dtype=torch.int32), 2)
    assert means(states, where).tolist() == [[2.0, 3.0], [5.0, 9.0]]
    owners, places = where.owners_and_places()
    assert (owners.tolist(), places.tolist()) == ([0, 0, 1], [0, 1, 0])


def test_frozen_layers_compute_what_the_network_computes(
    network: CascadeNetwork, tokeniser: Any
) -> None:
    encoder: Any = network.encoder
    table = TokenTable.of(["who wrote emma ?", "jane austen .", "", "dune is a novel"], tokeniser)
    rows = np.arange(1, 4)
    batch = pack(table, np.zeros_like(rows), rows, PairTemplate.of(tokeniser))
    where = Sequences(batch.starts, batch.longest)
    with torch.inference_mode():
        wanted = bert_embed(encoder, batch)
        found = FrozenEmbedding.of(encoder.embeddings, torch.float32)(batch)
        torch.testing.assert_close(found, wanted)
        for layer in encoder.encoder.layer:
            wanted = bert_layer(layer, wanted, batch)
            found = FrozenLayer.of(layer, torch.float32)(found, where)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
