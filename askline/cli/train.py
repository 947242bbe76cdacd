"""`askline train`: train a network on labeled sets and write it as a model folder."""

from __future__ import annotations

import click

from .train_cascade import cascade, reader
from .train_light import light_commands
from .train_phrases import extractor, phrases
from .train_transformer import transformer

__all__ = ["train"]


@click.group()
def train() -> None:
    """Train a network and write it as a model folder."""


for command in (*light_commands(), transformer, cascade, reader, extractor, phrases):
    train.add_command(command)
