from __future__ import annotations

import pytest

from .conftest import Run

pytestmark = pytest.mark.slow


def test_demo_shows_the_answer_and_its_source(run: Run) -> None:
    result = run("demo")
    assert result.exit_code == 0
    assert "> It measures 9,289 kilometres.\n" in result.stdout
    assert "“9,289 kilometres” · trans-siberian-railway.txt:3 · " in result.stdout
