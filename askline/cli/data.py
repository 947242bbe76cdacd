"""`askline data`: which datasets there are, what is in them, and one of them as JSONL."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from .options import as_json, complete_set, data_root
from .tables import print_table

__all__ = ["data"]


@click.group()
def data() -> None:
    """Look at labelled question sets."""
