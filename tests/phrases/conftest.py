from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers", reason="tokenizers is not installed")

from askline.phrases.phrase_model import PhraseModel

from .models import make_folder, make_tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return make_tokenizer()


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("phrases") / "model")


@pytest.fixture(scope="session")
def model(model_folder: Path) -> PhraseModel:
    return PhraseModel.load(model_folder)
