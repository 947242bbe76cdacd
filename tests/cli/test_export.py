from __future__ import annotations

from pathlib import Path

import pytest

from ..engine.tiny_cascades import tiny_config, trained_folder
from .conftest import Run


@pytest.fixture
def trained(questions: Path) -> Path:
    return trained_folder(Path("trained"), tiny_config())


@pytest.mark.slow
def test_export_writes_a_folder_that_a_spec_can_name(
    run: Run, questions: Path, trained: Path
) -> None:
    pytest.importorskip("torch", reason="exporting needs torch: pip install '.[train]'")
    result = run("export", str(trained), "--out", "made", "--on", str(questions))
    assert result.exit_code == 0, result.output
    assert "made: 0." in result.stderr
    assert "Against torch: correlation 0.99" in result.stderr
    ranked = run(
        "rank", "Who wrote Emma?", "--ranker", "cascade(made)", stdin="It sold.\nJane did.\n"
    )
    assert ranked.exit_code == 0, ranked.output


def test_export_says_what_is_wrong_with_a_folder(run: Run, questions: Path) -> None:
    pytest.importorskip("torch", reason="exporting needs torch: pip install '.[train]'")
    result = run("export", "nowhere", "--out", "made", "--on", str(questions))
    assert result.exit_code == 1
    assert "No model folder at nowhere" in result.stderr
