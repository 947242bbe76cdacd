"""`/v1/ask` and `/v1/documents` over a real server."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from askline.corpus import Corpus
from askline.corpus.lock import writer_lock
from askline.serving.job_handler import _hide_paths

from .conftest import PAGES, TEXTS
from .server_process import Server


def _ask(server: Server, question: str, **options: Any) -> dict[str, Any]:
    response = server.post("/v1/ask", {"question": question, **options})
    assert response.status_code == 200, (response.text, server.lines[-50:])
    found: dict[str, Any] = response.json()
    return found


def test_an_answer_has_its_paragraph_and_exact_offsets(server: Server) -> None:
    found = _ask(server, "When was the first lighthouse on the rock lit?")
    best = found["answers"][0]
    assert best["text"] == "Its first lighthouse was lit in November 1698."
    assert best["before"] == "The rock lies nine miles off the coast."
    assert best["after"] == "A storm took the tower and its builder five years later."
    source = best["source"]
    text = PAGES[source["document"]]
    assert text[source["start"] : source["end"]] == best["text"]
    assert (source["unit"], source["number"]) == ("line", 1)
    assert found["no_answer"] is False


def test_stages_begin_with_retrieval_and_their_counts_match(server: Server) -> None:
    found = _ask(server, "When was the lighthouse lit?", ranker="jaccard % 2 >> bm25")
    stages = [(stage["ranker"], stage["entered"], stage["kept"]) for stage in found["stages"]]
    (_, total, kept), (first, entered, left), last = stages
    assert total == 8
    assert first == "jaccard % 2"
    assert entered == kept
    assert left == 2
    assert last == ("bm25", 2, 2)
    assert all(stage["dropped"] == stage["entered"] - stage["kept"] for stage in found["stages"])
    assert all(stage["ms"] >= 0 for stage in found["stages"])
    assert found["candidates"] is None


def test_explained_candidates_are_in_the_order_of_the_answers(server: Server) -> None:
    found = _ask(server, "Which lens did Fresnel build?", explain=True, top_k=2)
    texts = [candidate["text"] for candidate in found["candidates"]]
    assert [answer["text"] for answer in found["answers"]] == texts[:2]
    for candidate in found["candidates"]:
        assert [score["stage"] for score in candidate["stage_scores"]] == [0, 1]
    places = sorted(candidate["stage_scores"][1]["rank"] for candidate in found["candidates"])
    assert places == list(range(1, len(texts) + 1))


def test_without_a_shared_word_there_is_no_answer(server: Server) -> None:
    found = _ask(server, "Xylophones?")
    assert found["no_answer"] is True
    assert found["answers"] == []


def test_a_calibrated_ranker_gives_confidence_and_says_no(server: Server) -> None:
    sure = _ask(server, "yeast makes gas", ranker="calibrated")
    assert sure["answers"][0]["probability"] == pytest.approx(1.0)
    assert (sure["threshold"], sure["no_answer"]) == (0.5, False)
    unsure = _ask(server, "Which yeast did the bakers of old Vienna use?", ranker="calibrated")
    assert unsure["answers"][0]["probability"] < 0.5
    assert unsure["no_answer"] is True


def test_a_ranker_that_extracts_phrases_marks_the_phrase(server: Server) -> None:
    best = _ask(server, "first lighthouse was lit", ranker="jaccard % 3 >> calibrated")["answers"][
        0
    ]
    assert best["phrase"] == {"text": "1698", "start": 41, "end": 45}
    assert best["text"][41:45] == "1698"
    assert _ask(server, "yeast makes gas", ranker="calibrated")["answers"][0]["phrase"] is None
    assert _ask(server, "Which lighthouse?")["answers"][0]["phrase"] is None


def test_a_ranker_that_is_not_calibrated_has_no_probability(server: Server) -> None:
    assert _ask(server, "What makes gas?")["answers"][0]["probability"] is None


def test_documents_in_the_body_are_split_into_sentences(server: Server) -> None:
    documents = [{"id": "emma", "text": " ".join(TEXTS)}, "Another text. It rains."]
    found = _ask(server, "Who wrote Emma?", documents=documents, explain=True)
    best = found["answers"][0]
    assert best["text"] == TEXTS[2]
    assert best["source"]["document"] == "emma"
    assert best["before"] == f"{TEXTS[0]} {TEXTS[1]}"
    start, end = best["source"]["start"], best["source"]["end"]
    assert " ".join(TEXTS)[start:end] == TEXTS[2]
    assert found["stages"][0]["entered"] == 5
    assert {candidate["document"] for candidate in found["candidates"]} == {"emma", "1"}


def test_text_of_another_document_with_the_same_id_is_no_context(server: Server) -> None:
    lamp = {"id": "0", "text": "The first lighthouse was lit in 280 BC. It stood on an island."}
    cats = "Cats sleep all day."  # its id is its position, 0
    for documents in ([cats, lamp], [{"id": "0", "text": cats}, lamp]):
        best = _ask(server, "When was the first lighthouse lit?", documents=documents)["answers"][0]
        assert best["source"]["document"] == "0"
        assert (best["before"], best["after"]) == ("", "It stood on an island.")


def test_documents_in_the_body_can_be_ranked_whole(server: Server) -> None:
    found = _ask(server, "Who wrote Emma?", documents=TEXTS, split=False, ranker="bm25")
    assert [answer["source"]["document"] for answer in found["answers"]] == ["2", "0", "1"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"question": "  "}, 422, "must not be empty"),
        ({"question": ""}, 422, "question"),
        ({"question": "a", "documents": []}, 400, "at least one entry"),
        ({"question": "a", "ranker": "cosnet"}, 404, "Did you mean 'cosinet'"),
        ({"question": "a", "ranker": "cosinet('/etc')"}, 404, "without options"),
        ({"question": "a", "top_k": 0}, 422, "top_k"),
        ({}, 422, "question: Field required"),
    ],
)
def test_requests_that_cannot_be_answered(
    server: Server, body: dict[str, Any], status: int, message: str
) -> None:
    response = server.post("/v1/ask", body)
    assert response.status_code == status
    assert message in response.json()["message"]


def test_documents_are_added_changed_shown_and_removed(server: Server) -> None:
    name = "notes/on comets?.txt"
    path = "/v1/documents/notes/on%20comets%3F.txt"
    comet = {"id": name, "text": "The comet came back in 1759. Halley had said so."}
    added = server.post("/v1/documents", {"documents": [comet]}).json()
    assert added["documents"] == [{"id": name, "outcome": "added", "sentences": 2}]
    assert _ask(server, "When did the comet come back?")["answers"][0]["source"]["document"] == name
    again = server.post("/v1/documents", {"documents": [comet]}).json()
    assert (again["added"], again["unchanged"]) == (0, 1)
    shown = server.client.get(path, params={"first": 1}).json()
    assert [sentence["text"] for sentence in shown["sentences"]] == ["Halley had said so."]
    assert server.client.delete(path).json() == {"id": name, "removed": True}
    assert server.client.delete(path).status_code == 404
    assert server.client.get(path).status_code == 404


def test_an_empty_list_of_documents_is_refused_as_on_other_routes(server: Server) -> None:
    response = server.post("/v1/documents", {"documents": []})
    assert response.status_code == 400
    assert response.json()["message"] == "documents must have at least one entry, got none."


def test_documents_are_listed_page_by_page(server: Server) -> None:
    seen: list[str] = []
    after = ""
    while True:
        params: dict[str, str | int] = {"after": after, "limit": 2}
        page = server.client.get("/v1/documents", params=params).json()
        seen += [document["id"] for document in page["documents"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == sorted(PAGES)
    assert page["total"] == {"documents": 3, "sentences": 8}


@pytest.mark.parametrize("name", ["lamps", "lamps/", "%2F", ".", "~", "..", "%2E%2E%2F"])
def test_removing_needs_the_exact_id(server: Server, name: str) -> None:
    response = server.client.request("DELETE", f"/v1/documents/{name}")
    assert response.status_code in (404, 405, 422)
    assert server.client.get("/v1/documents").json()["total"]["documents"] == 3


@pytest.mark.slow
def test_without_an_index_questions_need_documents(slow_server: Server) -> None:
    response = slow_server.post("/v1/ask", {"question": "Which lamp?"})
    assert response.status_code == 404
    assert "--index DIR" in response.json()["message"]
    assert slow_server.client.get("/v1/documents").status_code == 404


def test_a_threshold_of_the_request_replaces_that_of_the_ranker(server: Server) -> None:
    question = "When was the first lighthouse on the rock lit?"
    own = _ask(server, question, ranker="cascade")
    lenient = _ask(server, question, ranker="cascade", threshold=0)
    strict = _ask(server, question, ranker="cascade", threshold=1)
    assert all(each["above_threshold"] for each in lenient["answers"])
    assert (lenient["threshold"], lenient["no_answer"]) == (0, False)
    assert (strict["threshold"], strict["no_answer"]) == (1, True)
    assert [each["above_threshold"] for each in own["answers"]] == [
        each["probability"] is not None and each["probability"] >= own["threshold"]
        for each in own["answers"]
    ]


def test_errors_of_the_index_do_not_name_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "secret place" / "index"
    with Corpus.open(folder, ranker=None) as corpus:
        corpus.add_texts(PAGES)
    options = ("--index", str(folder), "--model", "jaccard", "--workers", "1")
    with Server(*options) as running:
        with writer_lock(folder):
            busy = running.post("/v1/documents", {"documents": [{"id": "a", "text": "A text."}]})
        with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
            connection.execute("DROP TABLE sentence_blocks")
        damaged = running.post("/v1/ask", {"question": "Which lens did Fresnel build?"})
        running.await_line(f"The job add failed: {folder} is being written by process")
        running.await_line(f"The job ask failed: {folder}")
    assert (busy.status_code, damaged.status_code) == (503, 503)
    assert "INDEX is being written by process" in busy.text
    assert "INDEX/store.sqlite" in damaged.text
    assert "secret" not in busy.text + damaged.text
    assert str(tmp_path) not in busy.text + damaged.text


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("/srv/a/index/store.sqlite: full.", "INDEX/store.sqlite: full."),
        ("Run: askline index --out /srv/a/index", "Run: askline index --out INDEX"),
        ("No file '/usr/lib/x y/z.bin' here.", "No file 'FILE y/z.bin' here."),
        (r"C:\data\x.bin is damaged.", "FILE is damaged."),
        (
            "and/or, 1/2, /rerank, https://host/a/b stay.",
            "and/or, 1/2, /rerank, https://host/a/b stay.",
        ),
    ],
)
def test_paths_are_left_out_of_messages(message: str, shown: str) -> None:
    assert _hide_paths(message, "/srv/a/index") == shown
