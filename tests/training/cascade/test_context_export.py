"""A cascade's folder with a context: all else stays, and a reader's adapter replaces it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from askline.engine.encoder import load_encoder
from askline.errors import InputError
from askline.models.cascade_config import Adapter
from askline.models.folder import ModelFolder
from askline.training.cascade.context_export import write_context
from askline.training.cascade.reader_training import write_reader

from ...engine.tiny_cascades import CANDIDATES, QUESTION, tensors
from ...engine.tiny_contexts import PASSAGES, context_config, int8_folder

CONFIG = context_config()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `int8`, and `start`, which it was made from."""
    return int8_folder(tmp_path_factory.mktemp("context"), CONFIG).parent


def test_the_encoder_and_its_classifiers_stay_as_they_are(folder: Path) -> None:
    start, made = (ModelFolder.open(folder / name, kind="cascade") for name in ("start", "int8"))
    before, after = start.stored_tensors(), made.stored_tensors()
    for name, tensor in before.items():
        assert after[name].dtype == tensor.dtype
        assert after[name].tobytes() == tensor.tobytes()
    added = {name.partition(".")[0] for name in after.keys() - before.keys()}
    assert added == {"adapter", "reader", "context"}
    changed = {name for name in made.config if made.config[name] != start.config.get(name)}
    assert changed == {"reader", "adapter", "context"}
    rows = np.arange(len(CANDIDATES))
    scores = [
        load_encoder(one).begin(QUESTION, CANDIDATES).advance(rows, 3) for one in (start, made)
    ]
    assert scores[0].tobytes() == scores[1].tobytes()


def test_a_reader_with_another_adapter_takes_the_context_out(folder: Path, tmp_path: Path) -> None:
    opened = ModelFolder.open(folder / "int8", kind="cascade")
    weights = tensors(CONFIG)
    own = {name: one for name, one in weights.items() if name.startswith(("adapter.", "reader."))}
    pairs = [(QUESTION, text) for text in CANDIDATES]
    path = write_reader(opened, own, Adapter(0, 4), tmp_path, pairs=pairs, card="")
    made = ModelFolder.open(path, kind="cascade")
    assert "context" not in made.config
    assert load_encoder(made).context_depths == ()


def test_scales_need_windows(folder: Path, tmp_path: Path) -> None:
    start = ModelFolder.open(folder / "start", kind="cascade")
    own = {
        name: one
        for name, one in tensors(CONFIG).items()
        if name.startswith(("adapter.", "reader.", "context."))
    }
    assert CONFIG.context is not None
    with pytest.raises(InputError, match="At least one"):
        write_context(start, own, CONFIG.context, Adapter(0, 4), tmp_path, windows=[], card="")
    windows = [(QUESTION, passage) for passage in PASSAGES]
    path = write_context(
        start, own, CONFIG.context, Adapter(0, 4), tmp_path, windows=windows, card=""
    )
    one, other = (each / "weights.safetensors" for each in (path, folder / "int8"))
    assert one.read_bytes() == other.read_bytes()


def test_writing_a_context_needs_no_torch() -> None:
    code = "import sys, askline.training.cascade.context_export; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
