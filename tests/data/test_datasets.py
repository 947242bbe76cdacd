from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import askline.data as data
from askline.data import (
    DatasetStatistics,
    compute_statistics,
    dataset_names,
    load_dataset,
    load_paragraphs,
    read_selqa,
    read_wikiqa,
)
from askline.errors import DataError, InputError, UnknownNameError
from askline.types import QuestionSet

from .samples import labels, make_set, problems, write, write_json

QUESTION = '{"question": "Who?", "candidates": ["No.", "Ann."], "labels": [0, 1]}'
PAIRS = ['{"question": "Who?", "sentence": "Ann."}']


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ASKLINE_DATA", raising=False)
    (tmp_path / "squad").mkdir()
    write(tmp_path / "squad" / "train-pairs.jsonl", *PAIRS)
    return tmp_path


def squad(titles: int, prefix: str) -> dict[str, object]:
    def qa(name: str) -> dict[str, object]:
        return {"id": name, "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}

    return {
        "data": [
            {
                "title": f"{prefix}{number}",
                "paragraphs": [{"context": f"Ann {number}.", "qas": [qa(f"{prefix}{number}")]}],
            }
            for number in range(titles)
        ]
    }


def test_public_names_are_sorted_and_exist() -> None:
    assert data.__all__ == sorted(data.__all__)
    assert all(hasattr(data, name) for name in data.__all__)


def test_dataset_names_are_sorted_and_complete() -> None:
    names = dataset_names()
    assert list(names) == sorted(names)
    assert {"wikiqa:test", "trecqa:train-all", "trecqa-clean:dev", "squad2:dev"} <= set(names)
    assert {"squadshifts:train", "piaf:dev", "fquad:valid", "asnq:dev", "nq:train"} <= set(names)


def test_dataset_is_found_by_root_or_environment_variable(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_dataset("squad-pairs:train", root=root).name == "squad-pairs:train"
    assert len(load_dataset("squad-pairs:train", root=str(root))) == 1
    monkeypatch.setenv("ASKLINE_DATA", str(root))
    assert len(load_dataset("squad-pairs:train")) == 1
    with pytest.raises(InputError, match="No file"):
        load_dataset("squad-pairs:train", root=root / "elsewhere")


def test_gzip_file_can_replace_a_plain_one(root: Path) -> None:
    plain = root / "squad" / "train-pairs.jsonl"
    plain.with_name("train-pairs.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert len(load_dataset("squad-pairs:train", root=root)) == 1


@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_missing_data_folder_names_the_file_and_the_settings(
    root: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("ASKLINE_DATA", value)
    message = (
        r"wikiqa:test is read from wikiqa/WikiQA-test\.tsv in a data folder, and none is given\. "
        r"Set ASKLINE_DATA, or use --data DIR \(in Python: root=\)\."
    )
    with pytest.raises(InputError, match=message):
        load_dataset("wikiqa:test")


def test_missing_file_names_the_settings(root: Path) -> None:
    message = r"No file .*WikiQA-dev\.tsv, which wikiqa:dev is read from\..*ASKLINE_DATA or --data"
    with pytest.raises(InputError, match=message):
        load_dataset("wikiqa:dev", root=root)


@pytest.mark.parametrize("name", ["wikqa:test", "wikiqa:tests", "wikiqa:", "", "x"])
def test_unknown_name_lists_the_known_ones(root: Path, name: str) -> None:
    with pytest.raises(UnknownNameError, match="Known: asnq:dev, .*, wikiqa:train") as caught:
        load_dataset(name, root=root)
    if name.startswith("wikqa"):
        assert "Did you mean 'wikiqa:test'?" in str(caught.value)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_jsonl_path_is_read_in_the_own_format(root: Path, suffix: str) -> None:
    path = root / f"mine{suffix}"
    content = f"{QUESTION}\n".encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    found = load_dataset(str(path))
    assert (found.name, len(found)) == (str(path), 1)


def test_missing_path_and_other_format_are_reported(root: Path) -> None:
    with pytest.raises(InputError, match=r"No file .*none\.jsonl"):
        load_dataset(str(root / "none.jsonl"))
    other = write(root / "mine.json", QUESTION)
    with pytest.raises(
        InputError, match=r"a \.jsonl or \.jsonl\.gz file .* write NAME:.*mine\.json with"
    ):
        load_dataset(str(other))


def test_path_after_a_name_is_read_in_that_format(root: Path) -> None:
    path = write(root / "more.jsonl", *PAIRS, *PAIRS)
    found = load_dataset(f"squad-pairs:{path}")
    assert (found.name, len(found)) == (f"squad-pairs:{path}", 2)
    with pytest.raises(DataError, match=r"more\.jsonl:1: No 'candidates'"):
        load_dataset(f"trecqa:{path}")
    with pytest.raises(InputError, match=r"No file .*none\.tsv"):
        load_dataset(f"wikiqa:{root / 'none.tsv'}")


def test_file_without_suffix_is_found_in_the_current_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root / "more", *PAIRS)
    monkeypatch.chdir(root)
    assert len(load_dataset("squad-pairs:more")) == 1


def test_trecqa_clean_has_both_labels_and_uses_the_seed(root: Path) -> None:
    answer = {"sentence": "Ann.", "label": 1}
    others = [{"sentence": f"No {number}.", "label": 0} for number in range(9)]
    mixed = json.dumps({"question": "Who?", "candidates": [answer, *others]})
    only = json.dumps({"question": "Who?", "candidates": [answer]})
    path = write(root / "t.jsonl", mixed, only)
    assert len(load_dataset(f"trecqa:{path}")) == 2
    assert len(load_dataset(f"trecqa-clean:{path}")) == 1
    orders = {load_dataset(f"trecqa-clean:{path}", seed=seed).questions for seed in range(5)}
    assert len(orders) > 1


def test_datasets_without_splits_are_split_by_article(root: Path) -> None:
    (root / "squadshifts").mkdir()
    for prefix in ("new_wiki", "reddit", "amazon_reviews"):
        write_json(root / "squadshifts" / f"{prefix}_v1.0.json", squad(30, prefix))
    train, dev, whole = (
        load_dataset(f"squadshifts:{s}", root=root) for s in ("train", "dev", "all")
    )
    assert (train.name, len(train), len(dev), len(whole)) == ("squadshifts:train", 81, 9, 90)
    assert not {question.id for question in train} & {question.id for question in dev}
    assert len(load_dataset("squadshifts:amazon", root=root)) == 30


def test_files_that_share_ids_are_not_joined(root: Path) -> None:
    (root / "squadshifts").mkdir()
    for file in ("new_wiki", "reddit", "amazon_reviews"):
        write_json(root / "squadshifts" / f"{file}_v1.0.json", squad(2, "same"))
    with pytest.raises(InputError, match="The files of squadshifts:all cannot be joined"):
        load_dataset("squadshifts:all", root=root)


def test_name_without_split_is_the_train_split(root: Path) -> None:
    assert load_dataset("squad-pairs", root=root).name == "squad-pairs:train"


def test_every_dataset_has_a_default_split() -> None:
    """That is, each has a training split or one split only."""
    splits: dict[str, set[str]] = {}
    for name in dataset_names():
        dataset, _, split = name.partition(":")
        splits.setdefault(dataset, set()).add(split)
    assert [name for name, of in splits.items() if "train" not in of and len(of) > 1] == []


def _paragraph(name: str) -> dict[str, Any]:
    context = f"This is {name}. It is short."
    answers = [{"text": "short", "answer_start": context.index("short")}]
    return {
        "context": context,
        "qas": [
            {"id": f"{name}-{place}", "question": "What is it?", "answers": answers}
            for place in range(3)
        ],
    }


@pytest.fixture
def paragraph_root(tmp_path: Path) -> Path:
    """SQuADShifts' three files, two articles of one paragraph in each."""
    (tmp_path / "squadshifts").mkdir()
    for name in ("new_wiki", "reddit", "amazon_reviews"):
        articles = [
            {"title": f"{name} {number}", "paragraphs": [_paragraph(f"{name} {number}")]}
            for number in range(12)
        ]
        path = tmp_path / "squadshifts" / f"{name}_v1.0.json"
        path.write_text(json.dumps({"data": articles}))
    return tmp_path


@pytest.mark.parametrize("name", ["squadshifts", "squadshifts:train", "squadshifts:dev"])
def test_load_paragraphs_matches_load_dataset(paragraph_root: Path, name: str) -> None:
    paragraphs = load_paragraphs(name, root=paragraph_root)
    asked = {question.id for paragraph in paragraphs for question in paragraph.questions}
    assert asked == {question.id for question in load_dataset(name, root=paragraph_root)}


def test_load_paragraphs_accepts_a_path(paragraph_root: Path) -> None:
    path = paragraph_root / "squadshifts" / "reddit_v1.0.json"
    assert len(load_paragraphs(f"squadshifts:{path}")) == 12


@pytest.mark.parametrize("name", ["wikiqa:train", "questions.jsonl"])
def test_other_formats_have_no_paragraphs(name: str) -> None:
    assert load_paragraphs(name) == ()


def test_load_paragraphs_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which squad1:train is read from"):
        load_paragraphs("squad1:train", root=tmp_path)


SELQA_ROW = {"question": "Who?", "candidates": ["", "Ann.", "Bob."], "answers": [1]}


def test_selqa_empty_negatives_are_kept_by_default(tmp_path: Path) -> None:
    path = write_json(tmp_path / "s.json", [SELQA_ROW, SELQA_ROW])
    found = read_selqa(path)
    assert [question.id for question in found] == ["Q1", "Q2"]
    assert found.questions[0].texts == ["", "Ann.", "Bob."]
    assert labels(found.questions[0]) == [False, True, False]
    dropped = read_selqa(path, keep_empty=False).questions[1]
    assert (dropped.texts, labels(dropped)) == (["Ann.", "Bob."], [True, False])
    assert [candidate.id for candidate in dropped.candidates] == ["Q2-1", "Q2-2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": [3]}, "'answers' must be indexes from 0 to 2, got 3."),
        ({"answers": [-1]}, "'answers' must be indexes from 0 to 2, got -1."),
        ({"answers": ["1"]}, "'answers' must be indexes from 0 to 2, got '1'."),
        ({"answers": [0]}, "'candidates'[0] is an answer but empty. Fill it in."),
        (
            {"candidates": []},
            "'candidates' is an empty list. Add an entry, or remove the row.",
        ),
        ({"question": ""}, "'question' is empty. Fill it in, or remove it."),
    ],
)
def test_selqa_bad_entry_is_reported_with_its_position(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    path = write_json(tmp_path / "s.json", [SELQA_ROW, SELQA_ROW | changes, 5])
    assert problems(read_selqa, path) == [
        (0, f"[1]: {message}"),
        (0, "[2]: The entry must be a JSON object {…}, got a number."),
    ]


def test_selqa_document_of_another_structure_is_refused(tmp_path: Path) -> None:
    assert problems(read_selqa, write_json(tmp_path / "s.json", {"data": []})) == [
        (0, "Expected a JSON list of questions, got an object.")
    ]
    [(_, message)] = problems(read_selqa, write_json(tmp_path / "s.json", []))
    assert message.startswith("The file has no questions.")


WIKIQA_HEADER = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel"
WIKIQA_FIRST = "Q1\twhat is a loom?\tD1\tLoom\tD1-0\tA loom weaves cloth .\t1"
WIKIQA_SECOND = 'Q1\twhat is a loom?\tD1\tLoom\tD1-1\tOne says "loom" of it.\t0'
WIKIQA_OTHER = "Q2\twhat is tin?\tD2\tTin\tD2-0\tTin is a metal.\t0"


def test_wikiqa_rows_become_questions_in_order(tmp_path: Path) -> None:
    found = read_wikiqa(
        write(tmp_path / "dev.tsv", WIKIQA_HEADER, WIKIQA_FIRST, WIKIQA_OTHER, WIKIQA_SECOND),
        name="w",
    )
    assert found.name == "w"
    assert [question.id for question in found] == ["Q1", "Q2"]
    loom = found.questions[0]
    assert loom.text == "what is a loom?"
    assert [candidate.id for candidate in loom.candidates] == ["D1-0", "D1-1"]
    assert loom.texts[1] == 'One says "loom" of it.'
    assert labels(loom) == [True, False]


def test_wikiqa_quotation_marks_do_not_join_rows(tmp_path: Path) -> None:
    opened = 'Q1\twhat?\tD1\tT\tD1-0\t"An open quotation\t0'
    found = read_wikiqa(write(tmp_path / "dev.tsv", WIKIQA_HEADER, opened, WIKIQA_OTHER))
    assert len(found) == 2
    assert found.questions[0].texts == ['"An open quotation']


def test_wikiqa_columns_are_found_by_name(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.tsv",
        "Label\tSentence\tSentenceID\tQuestion\tQuestionID",
        "1\tTin is a metal.\tD2-0\twhat is tin?\tQ2",
    )
    [question] = read_wikiqa(path)
    assert (question.id, question.texts, labels(question)) == ("Q2", ["Tin is a metal."], [True])


def test_wikiqa_missing_column_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", WIKIQA_HEADER.replace("\tSentence\tLabel", ""), WIKIQA_FIRST)
    [(line, message)] = problems(read_wikiqa, path)
    assert line == 1
    assert message.startswith("No column Sentence, Label. Expected QuestionID, Question")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            WIKIQA_FIRST.rpartition("\t")[0],
            "Expected 7 tab-separated columns, got 6. Correct or remove the row.",
        ),
        (WIKIQA_OTHER[:-1] + "yes", "Label must be 0 or 1, got 'yes'."),
        (
            WIKIQA_OTHER.replace("Tin is a metal.", " "),
            "Sentence is empty. Fill it in, or remove it.",
        ),
        (WIKIQA_OTHER.replace("what is tin?", ""), "Question is empty. Fill it in, or remove it."),
        (WIKIQA_OTHER.replace("Q2", ""), "QuestionID is empty. Fill it in, or remove it."),
        (WIKIQA_OTHER.replace("D2-0", ""), "SentenceID is empty. Fill it in, or remove it."),
        (
            WIKIQA_FIRST,
            "The sentence id 'Q1 D1-0' is already used by line 2. Give each its own id.",
        ),
        (
            WIKIQA_FIRST.replace("loom?", "shuttle?"),
            "Q1 has a different question text in an earlier row. Correct it.",
        ),
    ],
    ids=["columns", "label", "sentence", "question", "id", "sentence-id", "twice", "two-texts"],
)
def test_wikiqa_bad_row_is_reported(tmp_path: Path, bad: str, message: str) -> None:
    path = write(tmp_path / "x.tsv", WIKIQA_HEADER, WIKIQA_FIRST, WIKIQA_SECOND, bad)
    assert problems(read_wikiqa, path) == [(4, message)]


def test_wikiqa_header_without_rows_or_broken_header_is_one_problem(tmp_path: Path) -> None:
    [(line, message)] = problems(read_wikiqa, write(tmp_path / "x.tsv", WIKIQA_HEADER))
    assert (line, message[:26]) == (0, "The file has no questions.")
    (tmp_path / "y.tsv").write_bytes(b"\xff\n" + WIKIQA_FIRST.encode())
    [(line, message)] = problems(read_wikiqa, tmp_path / "y.tsv")
    assert (line, message[:20]) == (1, "Byte 0xff at offset ")


def test_statistics_of_a_small_set() -> None:
    found = compute_statistics(
        make_set(
            [
                ("Who came?", {"Ann came.": 1, "Nobody did, they say.": 0, "So what?": 1}),
                ("What burnt last year?", {"Ann came.": 0}),
            ]
        )
    )
    assert found == DatasetStatistics(
        name="tiny",
        questions=2,
        candidates=4,
        answerable=1,
        both=1,
        positives=2,
        question_words=3.0,
        candidate_words=2.5,
    )
    assert found.percent_answerable == 50.0
    assert found.candidates_per_question == 2.0
    assert found.positives_per_question == 1.0


@pytest.mark.parametrize("question_set", [QuestionSet("x", ()), make_set([("Who?", {})])])
def test_averages_without_candidates_are_zero(question_set: QuestionSet) -> None:
    found = compute_statistics(question_set)
    assert (found.candidates, found.candidate_words, found.percent_answerable) == (0, 0.0, 0.0)
    assert (found.candidates_per_question, found.positives_per_question) == (0.0, 0.0)
