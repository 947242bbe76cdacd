"""What tuning leaves behind: the schedule in the model folder, and a report beside it."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path

from ..errors import ModelError
from ..text.writing import replacing
from .found import Tuned
from .plot import svg

__all__ = ["fingerprint", "store", "write_report"]

_CONFIG = "config.json"


def fingerprint(folder: Path) -> str:
    """Of all that a model computes with; its schedule and its card are no part of that."""
    digest = blake2b(digest_size=8)
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.name not in (_CONFIG, "README.md"):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def store(tuned: Tuned, folder: Path) -> None:
    """Put schedule, calibration and threshold into the folder's config; the rest stays."""
    path = folder / _CONFIG
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} must be a JSON object: {error}") from error
    _write(path, json.dumps(config | tuned.as_config(), indent=2, ensure_ascii=False))


def write_report(tuned: Tuned, folder: Path) -> tuple[Path, Path]:
    """The fronts as JSON and as a picture."""
    folder.mkdir(parents=True, exist_ok=True)
    figures, picture = folder / "front.json", folder / "front.svg"
    _write(figures, json.dumps(tuned.as_dict(), indent=1, ensure_ascii=False))
    _write(picture, svg(tuned).rstrip())
    return figures, picture


def _write(path: Path, text: str) -> None:
    with replacing(path) as stream:
        stream.write((text + "\n").encode())
