"""`askline ask` on a folder in another language, in a process of its own with an empty cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FRENCH = {
    "phare.txt": "Le rocher est loin de la côte.\n"
    "Le premier phare a été allumé en 1698. Une tempête l'a détruit en 1703.\n",
    "pain.md": "# Le pain\n\nLa levure fait lever la pâte. Le four doit être à 230 degrés.\n",
    "réunion.txt": "La réunion du conseil a lieu le mardi. Marie Lenoir préside le conseil.\n",
}
GERMAN = {
    "turm.txt": "Der Felsen liegt weit vor der Küste.\n"
    "Der erste Leuchtturm wurde 1698 angezündet. Ein Sturm hat ihn zerstört.\n",
    "brot.txt": "Die Hefe lässt den Teig aufgehen. Der Ofen muss heiß sein.\n",
}


def ask(folder: Path, question: str, *options: str) -> subprocess.CompletedProcess[str]:
    """The command as after a fresh installation: no cache, no settings."""
    empty = folder.parent / "empty"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASKLINE_")}
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "APPDATA"):
        kept[name] = str(empty)
    return subprocess.run(
        [sys.executable, "-m", "askline", "ask", question, folder.name, *options],
        cwd=folder.parent,
        env=kept | {"PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


def written(folder: Path, texts: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_ask_answers_from_a_folder_of_french_files(tmp_path: Path) -> None:
    notes = written(tmp_path / "notes", FRENCH)
    done = ask(notes, "Quand le premier phare a-t-il été allumé ?")
    assert done.returncode == 0, done.stderr
    assert "> Le premier phare a été allumé en 1698." in done.stdout.splitlines()
    assert "notes/phare.txt:2" in done.stdout
    assert "no model" not in done.stderr
    again = ask(notes, "Qui préside le conseil ?", "--json")
    assert again.returncode == 0, again.stderr
    first = json.loads(again.stdout)["answers"][0]
    assert first["text"] == "Marie Lenoir préside le conseil."
    assert first["phrase"]["text"] == "Marie Lenoir"
    assert first["probability"] > 0.5
    assert first["path"] == "notes/réunion.txt"


@pytest.mark.slow
def test_ask_says_that_a_language_without_a_model_is_ranked_by_words(tmp_path: Path) -> None:
    notes = written(tmp_path / "notes", GERMAN)
    done = ask(notes, "Wann wurde der erste Leuchtturm angezündet?")
    assert done.returncode == 0, done.stderr
    assert "> Der erste Leuchtturm wurde 1698 angezündet." in done.stdout.splitlines()
    assert "notes/turm.txt:2 · score " in done.stdout
    assert (
        "The text seems to be German, and there is no model for it: sentences are ranked by their "
        "words, without probabilities." in done.stderr
    )
