"""What differs between families of encoders: which inputs they take, how they count positions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ...errors import InputError
from ..transformer.network import transformers

__all__ = ["accepted", "attention", "check_window", "first_position", "second_type"]


def accepted(encoder: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inputs that this encoder knows; MPNet has no token types."""
    known = inspect.signature(encoder.forward).parameters
    return {name: value for name, value in batch.items() if name in known}


def second_type(encoder: Any) -> int:
    """The type of the second text's tokens: 1, or 0 where there is one type alone (RoBERTa)."""
    return int(getattr(encoder.config, "type_vocab_size", 1) > 1)


def first_position(encoder: Any) -> int:
    """The position of a text's first token: RoBERTa counts from behind its padding."""
    places = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    padding = getattr(places, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


def check_window(encoder: Any, window: int) -> None:
    """Refuse windows of more tokens than the encoder has positions."""
    most = getattr(encoder.config, "max_position_embeddings", window) - first_position(encoder)
    if window > most:
        raise InputError(f"The encoder reads {most} tokens at a time, got a window of {window}.")


def attention(may: Tensor) -> Tensor:
    """A mask (batch, tokens, tokens) of who may look at whom, as the library at hand takes it."""
    if int(transformers().__version__.partition(".")[0]) >= 5:
        return may[:, None]
    return may.to(torch.int64)
