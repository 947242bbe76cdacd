"""Every example runs as a user runs it, prints what it shows, and is listed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"

# Each example with the packages that it imports beside askline, and lines of its output in order.
OUTPUT: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rerank": (
        (),
        (
            r"How long can I keep a book\?",
            r"  1\. +\d+\.\d%  id 7 +Books are lent for four weeks, and films for one week\.",
            r"Who designed the building\?",
            r"  The best one is below the threshold of \d+%: no answer\.",
        ),
    ),
    "ask_folder": (
        (),
        (
            r"4 files, \d+ sentences",
            r"  Books are lent for four weeks, and films for one week\.",
            r"  \d+% “four weeks” – lending\.md:5, Borrowing books",
            r"  In winter it closes at five\.",
            r"  \d+% “thirty” – printing\.md:3, Printing and computers",
            r"\? Who founded the library\?",
            r"  No answer\. The closest sentence: .+",
        ),
    ),
    "rag": (
        (),
        (
            r"=== How much is the fee for a late book\?",
            r"\[1\] A late book costs twenty cents per day, .* \(lending\.md, Fees\)",
            r"Question: How much is the fee for a late book\?",
            r"=== Is there a cinema\?",
            r"No answer in the handbook: .*",
        ),
    ),
    "custom_ranker": (
        (),
        (
            r"shared_words keeps the rules\.",
            r"  A lighthouse keeper lives on the rock, .*",
            r"expected-answer\(bonus=0\.8\) keeps the rules\.",
            r"shared_words % 3 >> expected-answer\(bonus=0\.8\) keeps the rules\.",
            r"  It was built on the rock in 1698, .*",
        ),
    ),
    "spark_rank": (
        ("pyspark",),
        (
            r"0: \d\.\d+ Books are lent for four weeks\.",
            r"1: \d\.\d+ A lost card costs five euros\.",
        ),
    ),
    "streaming": (
        ("fastapi", "uvicorn", "prometheus_client"),
        (
            r"  read: When is the safety course\?",
            r"  best: The course is held every Thursday\.",
            r"  read: What does a lost card cost\?",
            r"  best: A lost card is replaced for five euros\.",
            r"From the service:",
            r"  .* \((rooms|lending|printing)\.md\)",
            r"  .* \((rooms|lending|printing)\.md\)",
            r"  .* \((rooms|lending|printing)\.md\)",
        ),
    ),
    "parquet_batch": (
        ("pyarrow",),
        (
            r"How do I reserve a book\?",
            r"  \d+%  Reserve a book on our site; .*",
            r"  \d+%  Open on Sunday from ten to four\.",
            r"  \d+%  A lost card is replaced for five euros\.",
        ),
    ),
    "dataframes": (
        ("pyarrow", "pandas", "polars"),
        (
            r"pandas, the best text of each row:",
            r"  101  +\d+%  Choose “Forgot password” to get a reset link\.",
            r"polars, 2 of 3 rows with a score above 70 %:",
            r"  102  Parcels arrive two days after they are sent\.",
            r"  103  Companies can pay by invoice within 30 days\.",
        ),
    ),
    "mcp_client": (
        ("mcp",),
        (
            r"Tools: ask, rank, show",
            r"ask:  A late book costs twenty cents per day, .* \(\d+%\)",
            r"show: 13 sentences below Lending, Borrowing books, Renewals, Fees",
            r"rank: The café opens at ten\.",
            r"A path outside the root is refused: True",
        ),
    ),
    "fine_tune_cosinet": (
        ("torch", "pytrec_eval"),
        (
            r"askline train cosinet --init cosinet --on train\.jsonl .*",
            r"epoch 3  loss [01]\.\d+",
            r"bm25 +P@1  33\.3 %",
            r"cosinet +P@1  75\.0 %",
            r"cosinet\('mine'\)  P@1 (9\d\.\d|100\.0) %",
        ),
    ),
}
SERVERS = {"fastapi_app"}  # tested below: it does not end


def _environment() -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "error",
        "PYTHONIOENCODING": "utf-8",
    }


def _require(packages: tuple[str, ...]) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTPUT)
def test_an_example_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    packages, patterns = OUTPUT[name]
    _require(packages)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,  # nothing depends on the folder it is started in, and nothing is left there
        env=_environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = iter(done.stdout.splitlines())
    for pattern in patterns:
        assert any(re.fullmatch(pattern, line) for line in lines), (pattern, done.stdout)
    assert list(tmp_path.iterdir()) == []


def _post(url: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.slow
def test_the_fastapi_app_answers() -> None:
    _require(("fastapi", "uvicorn"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/answer"
    texts = ["It sold well.", "Jane Austen wrote Emma.", "It rains."]
    command = [sys.executable, str(EXAMPLES / "fastapi_app.py"), str(port)]
    with subprocess.Popen(command, env=_environment(), stderr=subprocess.PIPE, text=True) as app:
        try:
            assert app.stderr is not None
            assert any("running on" in line for line in app.stderr)
            status, best = _post(url, {"question": "Who wrote Emma?", "texts": texts})
            assert (status, best["text"], best["answered"]) == (200, texts[1], True)
            status, other = _post(url, {"question": "When does it open?", "texts": texts})
            assert (status, other["answered"]) == (200, False)
            assert other["probability"] < best["probability"] <= 1
            assert _post(url, {"question": "Who?", "texts": []})[0] == 422
        finally:
            app.terminate()
            app.wait(30)


def test_every_example_is_listed_and_tested() -> None:
    files = {path.stem for path in EXAMPLES.glob("*.py")}
    assert files == {*OUTPUT, *SERVERS}
    table = (EXAMPLES / "README.md").read_text("utf-8")
    assert set(re.findall(r"\[(\w+)\.py\]\(\1\.py\)", table)) == files


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(path: Path) -> None:
    text = path.read_text("utf-8")
    assert 20 <= len(text.splitlines()) <= 60
    assert text.startswith('"""\n')
    assert f"    python examples/{path.name}" in text.split('"""')[1]
