"""A larger teacher of the context pass: its encoder beside transformers, and all four commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import askline
from askline.models.folder import ModelFolder
from research.recipes.context_teacher import MPNetTeacher, main

from ...engine.tiny_contexts import context_config, int8_folder


def mpnet(transformers: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.MPNetConfig(
        vocab_size=300,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=130,
    )
    return transformers.MPNetModel(config, add_pooling_layer=False).eval()


def test_the_teacher_computes_what_transformers_does(transformers: Any) -> None:
    model = mpnet(transformers)
    tokens = torch.tensor([[0, 20, 21, 22, 2], [0, 30, 31, 2, 1]])
    inside = tokens != 1
    with torch.no_grad():
        theirs = model(input_ids=tokens, attention_mask=inside.long()).last_hidden_state
        own = MPNetTeacher(model, cls_id=1, sep_id=2).eval()._encode(tokens, inside)
    torch.testing.assert_close(own[inside], theirs[inside], atol=1e-5, rtol=1e-4)


@pytest.mark.slow
def test_commands_write_a_folder_with_another_context(
    tmp_path: Path, data_folder: Path, transformers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKLINE_DATA", str(data_folder))
    cascade, examples, out = int8_folder(tmp_path, context_config()), tmp_path / "sets", tmp_path
    mpnet(transformers).save_pretrained(tmp_path / "mpnet")
    training = ["--encoder", f"{tmp_path / 'mpnet'}", "--device", "cpu", "--epochs", "2"]
    training += ["--batch-size", "2"]

    def run(*arguments: object) -> None:
        main([str(each) for each in arguments])

    run("prepare", cascade, "--out", examples)
    run("teacher", cascade, examples, *training, "--out", out / "teacher.pt")
    taught, labels = out / "taught.safetensors", out / "labels.safetensors"
    with_teacher = ["--teacher", out / "teacher.pt"]
    run("student", cascade, examples, *training, *with_teacher, "--seed", 1, "--out", taught)
    run("student", cascade, examples, *training, "--seed", 2, "--out", labels)
    run("export", cascade, taught, labels, "--out", out / "new")

    before, after = (
        ModelFolder.open(path, kind="cascade").stored_tensors() for path in (cascade, out / "new")
    )
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert any(name.startswith("adapter.") for name in changed)
    assert all(name.startswith(("adapter.", "context.", "reader.")) for name in changed)
    passage = askline.Passage(["Jane wrote Emma.", "Emma is a novel."])
    hits = askline.Cascade.load(out / "new").rank("Who wrote Emma?", [passage])
    assert {hit.index for hit in hits} == {0, 1}
