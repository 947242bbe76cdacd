"""A trained folder → what runs without torch, checked against torch on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..engine.batching import Crew
from ..engine.encoder import OnnxEncoder, open_session
from ..engine.pair_windows import Windows
from ..engine.tokenizer import WordPiece
from ..errors import InputError, ModelError
from ..models.cascade_config import CascadeLayout, Precision
from ..models.folder import write_folder
from ..models.huggingface import CascadeSource
from ..text.atomic_write import replacing
from .export_check import Agreement, agreement, check_tokens, torch_scores
from .export_onnx import onnx_file
from .observing import Pair
from .quantised import quantised

__all__ = ["Exported", "Format", "export"]

Format = Literal["askline", "onnx"]
FloatArray = NDArray[np.float32]

_FLOAT_LIMIT = 1e-3  # largest difference to torch that rounding explains
_INT8_LIMIT = 0.99  # least correlation with torch; a sound export has 0.999
_CHECKED = 24  # pairs scored by torch as well
_KEPT = ("schedule", "calibration", "threshold")  # of the cascade's entry, where training set them


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and how near to torch it is."""

    path: Path
    bytes: int
    agreement: Agreement


def export(
    folder: str | PathLike[str],
    to: str | PathLike[str],
    *,
    precision: Precision = "int8",
    to_format: Format = "askline",
    last_depth: int | None = None,
    pairs: Sequence[Pair],
) -> Exported:
    """
    Write a runtime folder or an ONNX folder.

    `pairs` are (question, candidate) texts: the steps of int8 are fitted to them, and some of them
    are scored by torch and by what was made, whose scores must agree. Classifiers behind
    `last_depth` are left out; their layers stay, and a reader may be trained on them.
    """
    source, target = CascadeSource.read(folder), Path(to).expanduser()
    source = source if last_depth is None else source.up_to(last_depth)
    if target.exists() and target.resolve() == source.path.resolve():
        raise InputError(f"--out must be another folder than {source.path}, which is read.")
    if not pairs:
        raise InputError("At least one (question, candidate) pair is needed to check the export.")
    tokeniser = WordPiece.load(source.path / "tokenizer.json")
    checked = pairs[:: max(1, len(pairs) // _CHECKED)]
    check_tokens(source, tokeniser, checked)
    wanted = torch_scores(source, tokeniser, checked)
    layout, tensors = source.layout, dict[str, NDArray[Any]](source.tensors)
    if precision == "int8":
        layout, tensors = quantised(layout, source.tensors, tokeniser, pairs)
    if to_format == "onnx":
        file = onnx_file(layout, tensors)
        found = _by_file(file, layout, tokeniser, checked)
    else:
        found = _by_engine(OnnxEncoder(layout, tensors, tokeniser, Crew(1)), checked)
    near = agreement(found, wanted)
    _refuse_far(near, precision)
    if to_format == "onnx":
        _write_onnx(source, target, file, near)
    else:
        _write_runtime(source, target, layout, tensors, near)
    size = sum(one.stat().st_size for one in target.iterdir() if one.is_file())
    return Exported(target, size, near)


def _by_engine(encoder: OnnxEncoder, pairs: Sequence[Pair]) -> FloatArray:
    scores = np.empty((len(encoder.depths), len(pairs)), np.float32)
    for at, (question, candidate) in enumerate(pairs):
        run = encoder.begin(question, [_first_window(encoder, question, candidate)])
        for row, depth in enumerate(encoder.depths):
            scores[row, at] = run.advance(np.zeros(1, np.int64), depth)[0]
    return scores


def _first_window(encoder: OnnxEncoder, question: str, candidate: str) -> str:
    """The part of a candidate that its first window reads; nearly always all of it."""
    positions = encoder.layout.encoder.positions
    windows = Windows.of(encoder.tokeniser, question, [candidate], positions=positions)
    if len(windows) == 1:
        return candidate
    end = encoder.tokeniser.pieces(candidate)[len(windows.parts[0]) - 2][2]
    return candidate[:end]


def _by_file(
    file: bytes, layout: CascadeLayout, tokeniser: WordPiece, pairs: Sequence[Pair]
) -> FloatArray:
    session = open_session(file)
    names = [f"logits_{depth}" for depth in layout.depths[:-1]] + ["logits"]
    scores = np.empty((len(names), len(pairs)), np.float32)
    for at, (question, candidate) in enumerate(pairs):
        positions = layout.encoder.positions
        windows = Windows.of(tokeniser, question, [candidate], positions=positions)
        numbers, kinds = windows.batch(np.zeros(1, np.int64))
        inputs = {"input_ids": numbers, "token_type_ids": kinds}
        found = session.run(names, {**inputs, "attention_mask": np.ones_like(numbers)})
        scores[:, at] = [one[0, 0] for one in found]
    return scores


def _refuse_far(near: Agreement, precision: Precision) -> None:
    if precision == "float32" and not near.largest <= _FLOAT_LIMIT:
        raise ModelError(
            f"The exported scores must be within {_FLOAT_LIMIT} of torch's, got {near.largest:.2g}."
        )
    if precision == "int8" and not near.correlation >= _INT8_LIMIT:
        raise ModelError(
            f"The int8 scores must correlate with torch's by {_INT8_LIMIT} or more, got "
            f"{near.correlation:.4f}. Export with --precision float32, or give pairs that are more "
            "like the texts that the model will read."
        )


def _write_runtime(
    source: CascadeSource,
    target: Path,
    layout: CascadeLayout,
    tensors: Mapping[str, NDArray[Any]],
    near: Agreement,
) -> None:
    theirs = json.loads((source.path / "config.json").read_text(encoding="utf-8"))
    entry = theirs.get("askline_cascade", {})
    kept = {key: entry[key] for key in _KEPT if key in entry}
    write_folder(
        target,
        config={**layout.to_config(), **kept},
        tensors=tensors,
        card=_card(source, near, layout.precision),
        files={"tokenizer.json": source.tokeniser},
    )


def _write_onnx(source: CascadeSource, target: Path, file: bytes, near: Agreement) -> None:
    target.mkdir(parents=True, exist_ok=True)
    files = {"model.onnx": file, "README.md": _card(source, near, "ONNX").encode()}
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if (source.path / name).is_file():
            files[name] = (source.path / name).read_bytes()
    for name, content in files.items():
        with replacing(target / name) as stream:
            stream.write(content)


def _card(source: CascadeSource, near: Agreement, kind: str) -> str:
    """The trained folder's card, and what the export did to it."""
    own = source.path / "README.md"
    text = own.read_text(encoding="utf-8").rstrip() if own.is_file() else "# cascade"
    return (
        f"{text}\n\n## Export\n\nExported by `askline export` as {kind}. Against torch on "
        f"{_CHECKED} pairs: correlation {near.correlation:.5f} at full depth, largest difference "
        f"{near.largest:.2g} over all depths, in logits.\n"
    )
