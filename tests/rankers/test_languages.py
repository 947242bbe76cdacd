"""Models by language: which one ranks, what happens without one."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import askline
from askline.errors import InputError, LanguageWarning, UnknownNameError
from askline.rankers import BM25, Cascade, Cut, Pipeline, WithDeadline
from askline.rankers import cascade as cascade_module
from askline.rankers.cascade import CascadeOptions, shipped_folder

from .cascade_folders import cascade_folder

FRENCH = (
    "Qui a construit le phare ?",
    ["Le phare est au bord de la mer.", "Il a été construit par un ingénieur de la ville."],
)
GERMAN = (
    "Wer hat den Leuchtturm gebaut?",
    ["Er ist nicht alt und steht auf der Insel.", "Ein Ingenieur hat den Leuchtturm gebaut."],
)
ENGLISH = (
    "Who built the lighthouse?",
    ["The lighthouse is by the sea.", "It was built by an engineer of the town."],
)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cascade]:
    """A small cascade in place of the shipped one, with a French one beside it."""
    folders = {
        "en": cascade_folder(tmp_path / "en"),
        "fr": cascade_folder(tmp_path / "fr", threshold=0.25),
    }
    monkeypatch.setattr(cascade_module, "shipped_folder", folders.__getitem__)
    cascade_module._load_shipped.cache_clear()
    yield Cascade.load()
    cascade_module._load_shipped.cache_clear()


def test_french_requests_go_to_the_french_model(shipped: Cascade) -> None:
    stages = [stage.ranker for stage in shipped.trace(*FRENCH).stages]
    assert stages == ["cascade(depth=4, language=fr)"]
    assert "language" not in str(shipped.trace(*ENGLISH).stages)


def test_each_request_of_a_batch_has_its_own_model(shipped: Cascade) -> None:
    together = shipped.trace_many([FRENCH, ENGLISH, FRENCH])
    for ranking, request in zip(together, (FRENCH, ENGLISH, FRENCH), strict=True):
        alone = shipped.trace(*request)
        assert ranking.hits == alone.hits
        assert [stage.ranker for stage in ranking.stages] == [
            stage.ranker for stage in alone.stages
        ]


def test_other_languages_are_ranked_by_their_words_with_a_warning(shipped: Cascade) -> None:
    with pytest.warns(LanguageWarning, match="German, and there is no model for it"):
        ranking = shipped.trace(*GERMAN)
    assert ranking.hits[0].index == 1
    assert [stage.ranker for stage in ranking.stages] == ["bm25"]
    assert ranking.hits[0].probability is None


def test_a_named_language_or_folder_is_not_questioned(shipped: Cascade, tmp_path: Path) -> None:
    french = Cascade.load(language="fr")
    assert "language=fr" in french.trace(*ENGLISH).stages[0].ranker
    assert french.threshold == 0.25
    assert str(french) == "cascade(language=fr)"
    assert str(askline.load("cascade", language="fr")) == str(french)
    own = Cascade.load(tmp_path / "en")
    assert own.for_language("fr") is own
    assert own.trace(*GERMAN).hits[0].probability is not None
    assert shipped.for_language("en") is shipped


def test_load_takes_a_language(shipped: Cascade) -> None:
    ranker = askline.load("bm25 % 3 >> cascade", language="fr")
    assert str(ranker) == "bm25 % 3 >> cascade(language=fr)"
    english = askline.load("cascade", language="en")
    assert str(english) == "cascade(language=en)"
    assert "language=en" in english.trace(*FRENCH).stages[0].ranker
    assert str(askline.load("cascade(language=en)", language="fr")) == "cascade(language=en)"
    with pytest.raises(UnknownNameError, match="No language 'xx'. Known: en, fr."):
        askline.load(language="xx")
    with pytest.raises(InputError, match="Give a folder or a language, not both"):
        Cascade.load("folder", language="fr")


def test_composites_pass_the_language_on(shipped: Cascade) -> None:
    french = shipped.for_language("fr")
    assert french is not None
    assert shipped.top(3).for_language("fr") == Cut(french, 3)
    assert (BM25() >> shipped).for_language("fr") == Pipeline((BM25(), french))
    assert WithDeadline(shipped, 50).for_language("fr") == WithDeadline(french, 50)
    assert (BM25() >> shipped).for_language("de") is None
    both = BM25() >> shipped
    assert both.for_language("en") is both
    assert BM25().for_language("de") == BM25()


def test_a_french_cascade_can_be_pickled(shipped: Cascade) -> None:
    french = shipped.for_language("fr")
    assert french is not None
    copy = pickle.loads(pickle.dumps(french))
    assert copy.options == CascadeOptions(language="fr")
    assert copy.rank(*FRENCH) == french.rank(*FRENCH)


def test_without_the_french_folder_the_english_model_ranks(
    shipped: Cascade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascade_module, "shipped_folder", shipped_folder)
    monkeypatch.setattr("askline.models.folder.files", lambda _: Path("nowhere"))
    cascade_module._load_shipped.cache_clear()
    assert shipped.for_language("fr") is shipped
    with pytest.raises(askline.ModelError, match="ships without the French model 'cascade-fr'"):
        Cascade.load(language="fr")
