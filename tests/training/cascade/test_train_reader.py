from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from askline.cli.train_cascade import reader
from askline.errors import InputError, ModelError
from askline.models.cascade_config import Adapter, CascadeConfig
from askline.models.folder import ModelFolder

from .reader_folders import folder

__all__ = ["folder"]


def run(*options: str | Path) -> Result:
    return CliRunner().invoke(reader, [str(option) for option in options], catch_exceptions=False)


def test_command_trains_a_reader_and_another_with_a_teacher(
    tmp_path: Path, folder: ModelFolder, squad_file: Path
) -> None:
    basic = ("--model", folder.path, "--on", f"squad1:{squad_file}", "--rank", "3")
    short = ("--epochs", "1", "--batch-size", "2", "--minutes", "1")
    first, second = tmp_path / "first", tmp_path / "second"
    result = run(*basic, *short, "--from-layer", "2", "--out", first)
    assert "seed 0  step 2 of 2" in result.stderr
    run(*basic, *short, "--teacher", first, "--seed", "1", "--seed", "2", "--out", second)
    for path, adapter in ((first, Adapter(1, 3)), (second, Adapter(0, 3))):
        opened = ModelFolder.open(path, kind="cascade")
        assert CascadeConfig.from_config(opened.config, path=path).adapter == adapter
        assert "The weights of the cascade are unchanged." in (path / "README.md").read_text()


def test_invalid_options_are_refused(tmp_path: Path, folder: ModelFolder, squad_file: Path) -> None:
    on = ("--model", folder.path, "--on", f"squad1:{squad_file}", "--out", tmp_path / "out")
    with pytest.raises(ModelError, match="first layer must be from 0 to 2, got 6"):
        run(*on, "--from-layer", "7")
    with pytest.raises(InputError, match="Expected a config of a reader with an adapter"):
        run(*on, "--teacher", folder.path)
    assert not (tmp_path / "out").exists()
