from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.engine.encoder import load_encoder
from askline.engine.sessions import create_session
from askline.engine.tokenizer import WordPiece
from askline.errors import InputError, ModelError
from askline.models.cascade_config import Head, Precision
from askline.models.folder import ModelFolder
from askline.models.huggingface import CascadeCheckpoint
from askline.training.cascade.cascade_export import export_cascade, torch_scores
from askline.training.post_training_quantization import sample_pairs
from askline.types import Candidate, Question, QuestionSet

from ...engine.tiny_cascades import (
    CANDIDATES,
    QUESTION,
    cross_encoder_folder,
    tiny_config,
    trained_folder,
)

PAIRS = [(QUESTION, candidate) for candidate in CANDIDATES]
HEADS: list[Head] = ["first", "mean", "mixed"]
PRECISIONS: list[Precision] = ["int8", "float32"]


@pytest.mark.parametrize("head", HEADS)
def test_float_scores_are_torch_s(tmp_path: Path, head: Head) -> None:
    folder = trained_folder(tmp_path / "trained", tiny_config(head, positions=128))
    made = export_cascade(folder, tmp_path / "made", precision="float32", pairs=PAIRS)
    assert made.agreement.largest < 1e-4
    wanted = torch_scores(
        CascadeCheckpoint.read(folder), WordPiece.load(folder / "tokenizer.json"), PAIRS
    )
    encoder = load_encoder(ModelFolder.open(made.path, kind="cascade"))
    run, rows = encoder.begin(QUESTION, CANDIDATES), np.arange(len(CANDIDATES))
    found = np.stack([run.advance(rows, depth) for depth in encoder.depths])
    assert np.abs(found - wanted).max() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_int8_is_small_and_near(tmp_path: Path, head: Head) -> None:
    folder = trained_folder(tmp_path / "trained", tiny_config(head))
    made = export_cascade(folder, tmp_path / "made", pairs=PAIRS)
    whole = export_cascade(folder, tmp_path / "whole", precision="float32", pairs=PAIRS)
    assert made.agreement.correlation > 0.99
    assert made.bytes < whole.bytes / 2
    opened = ModelFolder.open(made.path, kind="cascade")
    assert opened.config["precision"] == "int8"
    stored = opened.stored_tensors()
    assert {stored[f"layers.1.{name}.weight"].dtype.name for name in ("key", "outer")} == {"int8"}
    assert stored["classifiers.3.out.weight"].dtype == np.float16
    run = load_encoder(opened).begin(QUESTION, CANDIDATES)
    assert np.isfinite(run.advance(np.arange(len(CANDIDATES)), 3)).all()
    assert "correlation" in (made.path / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("head", HEADS)
def test_onnx_allows_padding(tmp_path: Path, precision: Precision, head: Head) -> None:
    folder = trained_folder(tmp_path / "trained", tiny_config(head))
    made = export_cascade(
        folder, tmp_path / "made", precision=precision, to_format="onnx", pairs=PAIRS
    )
    session = create_session((made.path / "model.onnx").read_bytes())
    names = [one.name for one in session.get_outputs()]
    assert names == ["logits_1", "logits", "start_logits", "end_logits"]
    numbers = np.array([[2, 9, 3, 7, 3, 0, 0], [2, 9, 3, 7, 8, 9, 3]])
    mask = np.array([[1, 1, 1, 1, 1, 0, 0], [1] * 7])
    kinds = np.array([[0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1, 1]])
    inputs = {"input_ids": numbers, "attention_mask": mask, "token_type_ids": kinds}
    padded = session.run(["logits"], inputs)[0]
    short = {name: value[:1, :5] for name, value in inputs.items()}
    assert session.run(["logits"], short)[0] == pytest.approx(padded[:1], abs=1e-4)


@pytest.mark.parametrize("to_format", ["askline", "onnx"])
def test_an_export_may_end_before_the_last_classifier(tmp_path: Path, to_format: Any) -> None:
    folder = trained_folder(tmp_path / "trained", tiny_config("mixed", reader=False))
    made = export_cascade(
        folder, tmp_path / "made", precision="float32", to_format=to_format, last_depth=1,
        pairs=PAIRS,
    )  # fmt: skip
    assert made.agreement.largest < 1e-4
    if to_format == "askline":
        opened = ModelFolder.open(made.path, kind="cascade")
        assert (opened.config["depths"], opened.config["head"]) == ([1], "mean")
        assert "layers.2.outer.weight" in opened.stored_tensors()
        assert "classifiers.3.out.weight" not in opened.stored_tensors()


def test_a_cross_encoder_is_exported_as_both(tmp_path: Path) -> None:
    folder = cross_encoder_folder(tmp_path / "cross", tiny_config())
    made = export_cascade(folder, tmp_path / "made", precision="float32", pairs=PAIRS)
    assert ModelFolder.open(made.path, kind="cascade").config["depths"] == [3]
    onnx = export_cascade(
        folder, tmp_path / "onnx", precision="float32", to_format="onnx", pairs=PAIRS
    )
    assert max(made.agreement.largest, onnx.agreement.largest) < 1e-4
    assert sorted(file.name for file in onnx.path.iterdir()) == [
        *("README.md", "config.json", "model.onnx", "tokenizer.json")
    ]


def test_schedule_and_calibration_of_the_checkpoint_are_kept(tmp_path: Path) -> None:
    folder = trained_folder(tmp_path / "trained", tiny_config())
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["askline_cascade"]["threshold"] = 0.25
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    made = export_cascade(folder, tmp_path / "made", precision="float32", pairs=PAIRS)
    assert ModelFolder.open(made.path, kind="cascade").config["threshold"] == 0.25


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_export_that_differs_from_torch_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: Precision
) -> None:
    folder = trained_folder(tmp_path / "trained", tiny_config())
    drawn = np.random.default_rng(0).standard_normal((2, len(PAIRS))).astype(np.float32)
    monkeypatch.setattr(f"{export_cascade.__module__}.torch_scores", lambda *_: drawn)
    with pytest.raises(ModelError, match="scores must"):
        export_cascade(folder, tmp_path / "made", precision=precision, pairs=PAIRS)
    assert not (tmp_path / "made").exists()


def test_the_folder_that_is_read_is_not_written(tmp_path: Path) -> None:
    folder = trained_folder(tmp_path / "trained", tiny_config())
    with pytest.raises(InputError, match="must be another folder"):
        export_cascade(folder, folder, pairs=PAIRS)


def test_an_export_without_pairs_cannot_be_checked(tmp_path: Path) -> None:
    folder = trained_folder(tmp_path / "trained", tiny_config())
    with pytest.raises(InputError, match="At least one"):
        export_cascade(folder, tmp_path / "made", pairs=[])


def test_pairs_hold_answers_and_others() -> None:
    questions = QuestionSet(
        "toy",
        tuple(
            Question(
                str(number),
                f"question {number}",
                (Candidate("a", "answer", True), Candidate("b", "other")),
            )
            for number in range(40)
        ),
    )
    pairs = sample_pairs(questions, 30)
    assert len(set(pairs)) == 30
    assert {"answer", "other"} == {text for _, text in pairs}
    assert pairs == sample_pairs(questions, 30)
