from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file

from research.recipes.word_vectors import SentenceEncoder, distilled

torch = pytest.importorskip("torch")


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "light", "##house", "sea", "cafe", "##s", "rock"]


@pytest.fixture
def encoder(tmp_path: Path) -> SentenceEncoder:
    torch.manual_seed(0)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(PIECES), 8),
        "embeddings.position_embeddings.weight": (16, 8),
        "embeddings.token_type_embeddings.weight": (2, 8),
    }
    normal = ["embeddings.LayerNorm"]
    linear = {}
    for layer in ("encoder.layer.0", "encoder.layer.1"):
        for part in ("query", "key", "value"):
            linear[f"{layer}.attention.self.{part}"] = (8, 8)
        linear[f"{layer}.attention.output.dense"] = (8, 8)
        linear[f"{layer}.intermediate.dense"] = (12, 8)
        linear[f"{layer}.output.dense"] = (8, 12)
        normal += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for name, shape in linear.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": (shape[0],)}
    for name in normal:
        shapes |= {f"{name}.weight": (8,), f"{name}.bias": (8,)}
    save_file(
        {name: torch.randn(*shape) for name, shape in shapes.items()},
        tmp_path / "model.safetensors",
    )
    config = {"num_hidden_layers": 2, "num_attention_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    return SentenceEncoder.load(tmp_path)


def test_words_are_split_into_the_longest_pieces(encoder: SentenceEncoder) -> None:
    assert encoder._split("lighthouses") == [2, 4, 5, 8, 3]
    assert encoder._split("cafés") == [2, 7, 8, 3]
    assert encoder._split("lightning") == [2, 1, 3]


def test_a_word_is_encoded_alike_in_any_company(encoder: SentenceEncoder) -> None:
    together = encoder.encode(["sea", "lighthouses", "rock"])
    assert torch.linalg.norm(together, dim=1).numpy() == pytest.approx(1)
    assert together[0].numpy() == pytest.approx(encoder.encode(["sea"])[0].numpy(), abs=1e-5)


def test_distilled_vectors_have_length_one_and_8_bits(encoder: SentenceEncoder) -> None:
    known = ["sea", "rock", "light", "lighthouse", "cafe", "seas"]
    vectors = distilled(encoder, known, 3)
    assert vectors.words == tuple(known)
    assert vectors.rows.dtype == np.int8
    assert np.linalg.norm(vectors.of(known), axis=1) == pytest.approx(1)
    assert (np.diff(vectors.idf(known)) > 0).all()
