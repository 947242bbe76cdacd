"""
The sparse part: words around a phrase against words that a question has or expects.

A dense vector of a few hundred numbers cannot hold which words stand in the phrase's clause; names
and years are lost first. So a phrase also weighs the words of its paragraph (Lee et al., 2020,
"Contextualized sparse representations"), and a question weighs its own words and, through the
encoder's word embeddings, words like those it would expect (Formal et al., 2021, SPLADE). The score
is the sum over the vocabulary of weight times weight.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["LexicalHead"]

_KEYS = 128


class LexicalHead(nn.Module):
    """Weights of words, never below 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.seek = nn.Linear(2 * width, _KEYS)
        self.key = nn.Linear(width, _KEYS)
        self.shift = nn.Parameter(torch.zeros(1))
        self.own = nn.Linear(width, 1)
        self.expand = nn.Linear(width, width)
        self.threshold = nn.Parameter(-torch.ones(1))  # few words are expected at first

    def phrase(self, joined: Tensor, states: Tensor, inside: Tensor) -> Tensor:
        """Weights (windows, candidates, tokens) of a window's tokens for each of its phrases."""
        match = self.seek(joined) @ self.key(states).transpose(1, 2) / _KEYS**0.5
        weights = torch.log1p(functional.relu(match.float() + self.shift))
        inner = inside.clone()
        inner[:, 0] = False  # special tokens are no words
        inner[:, :-1] &= inside[:, 1:]
        inner[:, -1] = False
        return weights * inner[:, None]

    def question(self, states: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        """What is expected, token by token (questions, tokens, width), and weights of its own."""
        own = functional.softplus(self.own(states)[..., 0].float())
        inner = inside.clone()
        inner[:, 0] = False
        inner[:, :-1] &= inside[:, 1:]
        inner[:, -1] = False
        seeks = self.expand(states) * inner[..., None]
        return seeks, own * inner

    def wanted(
        self, seeks: Tensor, own: Tensor, tokens: Tensor, words: Tensor, embeddings: Tensor
    ) -> Tensor:
        """
        Weights (questions, words) of some words of the vocabulary.

        `tokens` (questions, tokens) are the questions' own; `embeddings` are those of `words`.
        """
        near = (seeks @ embeddings.to(seeks.dtype).T).amax(1).float()  # (questions, words)
        expected = torch.log1p(functional.relu(near + self.threshold))
        same = (tokens[..., None] == words).to(own.dtype)  # (questions, tokens, words)
        return expected + torch.einsum("qt,qtw->qw", own, same)
