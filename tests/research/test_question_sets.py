"""Question sets: small inputs in each format, the checks, and the files that are written."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from askline.data import read_paragraphs
from research.mining import question_sets
from research.mining.question_sets import (
    _TOKEN,
    ORIGINS,
    READERS,
    Asked,
    KeptOut,
    Origin,
    Passage,
    checked,
    convert,
)

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b.c")
POND = "The pond froze in 1987. Ducks left it for the river, and the river never froze."
KEPT = (
    "The ferry to the island leaves at nine in the morning and comes back at five in the evening. "
    "On Sundays it does not run, because its captain is at home with his large family."
)


def read(format_name: str, **files: str | bytes) -> list[Passage]:
    return list(
        READERS[format_name](
            {
                path.replace("__", "/"): text.encode() if isinstance(text, str) else text
                for path, text in files.items()
            }
        )
    )


def answers(passage: Passage) -> dict[str, list[str]]:
    return {
        question: [passage.text[start:end] for start, end in spans]
        for question, spans in passage.asked
    }


def squad(context: str, *questions: tuple[str, str, int], title: str = "Pond") -> str:
    qas = [
        {"question": question, "answers": [{"text": text, "answer_start": start}]}
        for question, text, start in questions
    ]
    return json.dumps(
        {"data": [{"title": title, "paragraphs": [{"context": context, "qas": qas}]}]}
    )


def origin(**given: int) -> Origin:
    return Origin("set", "squad", "CC0", "all", "a/b@HEAD", ("data/",), **given)


@pytest.fixture
def kept_out(tmp_path: Path) -> KeptOut:
    path = tmp_path / "kept.json"
    path.write_text(squad(KEPT, ("When does the ferry leave?", "nine", 34), title="Ferry_boat"))
    return KeptOut([f"squad1:{path}"])


def test_squad_corrects_an_offset() -> None:
    (passage,) = read(
        "squad", a=squad(POND, ("When did it freeze?", "froze", 60), ("Why?", "x", 0))
    )
    assert passage.asked[0].spans == [(POND.rindex("froze"), POND.rindex("froze") + 5)]
    assert passage.asked[1].spans == []


def test_triples_choose_the_sentence_that_shares_words() -> None:
    rows = [
        {"context": POND, "question": "Where did the ducks go?", "answer": "river"},
        {
            "context": POND,
            "question": "What did the ducks leave the pond for?",
            "answer": ["Ducks"],
        },
        {"context": "A cup. A cup.", "question": "What is it?", "answer": "cup"},
    ]
    text = "The mill is by the river. Ducks sleep on the river."
    rows.append({"context": text, "question": "Where do ducks sleep?", "answer": "river"})
    first, second = read("parts", **{"a.json": json.dumps(rows)})
    assert answers(first) == {"What did the ducks leave the pond for?": ["Ducks"]}
    assert second.asked[0].spans == [(text.rindex("river"), len(text) - 1)]


def test_questions_without_paragraphs_find_theirs() -> None:
    row = {"context": POND, "question": "Where did the ducks go?", "answer": "river"}
    other = "A cold autumn. The lake froze in 1801 and the geese flew to the river."
    vocabulary = "When did the pond lake freeze ? geese fly Where ducks".split()
    asked = ["When did the pond freeze ?", "When did geese fly ?", "When did the ducks freeze ?"]
    at = len(_TOKEN.findall(POND[: POND.index("1987")]))
    passages = read(
        "parts",
        **{
            "a.json": json.dumps([row]),
            "b.context": " ".join(_TOKEN.findall(other)),
            "b.question": "Where did the geese fly ?",
            "b.answer": "river",
            "data/vocab.dat": "\n".join(vocabulary),
            "data/train.ids.question": "\n".join(
                " ".join(str(vocabulary.index(word)) for word in one.split()) for one in asked
            ),
            "data/train.answer": "1987\n1987\n1987",
            "data/train.span": f"{at} {at}\n{at} {at}\n{at + 20} {at + 20}",
        },
    )
    found = {passage.text: answers(passage) for passage in passages}
    assert found[POND]["When did the pond freeze?"] == ["1987"]
    assert "When did the ducks freeze?" not in found[POND]
    assert found[other] == {"Where did the geese fly?": ["river"]}


def test_qamr_joins_tokens_and_sentences_and_wants_two_workers() -> None:
    key = "Wiki1k:wikipedia:7:2"
    tokens = "Nora said : `` I do n't swim -LRB- yet -RRB- , but Paul swims the lake . ''"
    sentences = f"{key}:0\t{tokens}\n{key}:1\tPaul swam it twice .\n{key}:3\tAlone ."
    swims = "\t".join(("9", "w", "0", "1", "who swims the lake daily ?", "13", "a:13", "b:12 13"))
    alone = "\t".join(("9", "w", "0", "2", "who said Paul swims ?", "0", "a:13", "b:4"))
    short = "\t".join(("9", "w", "0", "3", "who swims ?", "0", "a:0", "b:0"))
    gap = "\t".join(
        ("9", "w", "0", "4", "how often Paul swam the lake ?", "3", "a:1 3", "b:invalid")
    )
    rows = "\n".join((f"{key}:0\t{swims}", f"{key}:0\t{alone}", f"{key}:0\t{short}"))
    table = f"{rows}\n{key}:1\t{gap}\nPTB:1:2:3:4\t{swims}"
    (passage,) = read(
        "qamr", data__sentences=b"", **{"data__wiki-sentences.tsv": sentences, "t": table}
    )
    said = 'Nora said: "I don\'t swim (yet), but Paul swims the lake."'
    assert passage.text == f"{said} Paul swam it twice."
    assert answers(passage) == {
        "Who swims the lake daily?": ["Paul", "Paul", "but Paul"],
        "How often Paul swam the lake?": ["twice"],
    }


def test_fairytales_want_an_answer_word_for_word_in_one_section() -> None:
    sections = 'section,text\n1,"A fox met Rose. The fox was lame."\n2,Rose went home.\n'
    head = "question_id,local-or-sum,cor_section,question,answer1,answer4"
    lines = (
        "1,local,1,who met the fox?,rose.,",
        "2,local,1,who was lame?,fox,the fox",
        "3,local,1,why was it lame?,it fell,",
        "4,summary,1,who met whom?,Rose,",
    )
    (passage,) = read(
        "fairytales",
        **{
            "d__questions__val__fox-questions.csv": "\n".join((head, *lines)),
            "d__section-stories__val__fox-story.csv": sections,
        },
    )
    assert passage.title == "fox"
    assert answers(passage) == {
        "Who met the fox?": ["Rose"],
        "Who was lame?": ["The fox"],
        "Why was it lame?": [],
    }


def test_onestop_reads_the_tags_of_every_level() -> None:
    text = (
        "# Title\nA lost key\n\n# Paragraph\n\n"
        "Adv: <A1>Ida lost <D1>her key</D1>.</A1> <A2>She found it, <D2>later.</D2></A2>\n\n"
        "Int: <A1>Ida lost her key.</A1> She found it <A2>later</A2>, <A2>at home</A2>.\n\n"
        "Q: What did Ida lose?\na: A key\n\nQ2: When was it found?\n\nQ: It is\n"
    )
    first, second = read("onestop", key=text)
    assert first.title == second.title == "A lost key"
    assert first.text == "Ida lost her key. She found it, later."
    assert answers(first)["What did Ida lose?"] == ["Ida lost her key."]
    assert answers(first)["When was it found?"] == ["She found it, later."]
    assert answers(second)["When was it found?"] == ["later", "at home"]
    assert "It is" not in answers(second)


def test_doc2dial_keeps_turns_that_need_no_others() -> None:
    first = "{'text': ['in 1987'], 'answer_start': [15]}"
    lines = (
        f'1,user: when was the ice there,"{POND}","{first}",x,Ponds#1',
        f'2,user: where did the old ducks go?\tagent: what else,"{POND}","{first}",x,Ponds#1',
        f'3,user: when does it freeze there again?\tagent: what else,"{POND}","{first}",x,Ponds#1',
        f'4,agent: do you know the pond,"{POND}","{first}",x,Ponds#1',
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        head = "id,question,context,answers,domain,title"
        archive.writestr("a.csv", "\n".join((head, *lines)))
    (passage,) = read("doc2dial", a=packed.getvalue())
    assert passage.title == "Ponds"
    assert answers(passage) == {
        "when was the ice there": ["in 1987"],
        "where did the old ducks go?": ["in 1987"],
    }


def test_what_is_kept_out_is_dropped(kept_out: KeptOut) -> None:
    part = f"A new beginning. {KEPT.upper()[20:140]}, and a new end."
    asked = [Asked("Who is at home?", [(0, 5)])]
    question = Passage(
        "", POND, [Asked("when does  the ferry leave", [(0, 8)]), Asked("Where?", [(0, 8)])]
    )
    title = Passage("Ferry boat", POND, asked)
    assert checked(origin(), [Passage("", part, asked), question, title], kept_out) == []
    kept_out.add("", ["Who is at home?"])
    assert checked(origin(), [Passage("", POND, asked)], kept_out) == []
    twice = Passage("", f"{POND} {POND}", [Asked("Where did they go?", [(0, 5)])])
    assert checked(origin(), [twice], kept_out) == [twice]
    kept_out.add(twice.text, [])
    assert checked(origin(), [twice], kept_out) == []


def test_sentences_of_other_formats_are_kept_out(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    record = {"question": "Who runs it?", "candidates": [KEPT], "labels": [1]}
    path.write_text(json.dumps(record))
    kept_out = KeptOut([str(path)])
    assert kept_out.has_question("who runs it")
    assert kept_out.has_text("", f"Before. {KEPT} After.")
    assert not kept_out.has_text("", POND)


def test_answers_are_stripped_short_and_asked_once(kept_out: KeptOut) -> None:
    asked = [
        Asked("When did  it freeze?", [(16, 23), (15, 23), (0, len(POND) + 2)]),
        Asked("when did it freeze?", [(1, 4)]),
        Asked("What is all this?", [(1, len(POND))]),
    ]
    (passage,) = checked(origin(max_answer=10), [Passage("", f" {POND}\n", asked)], kept_out)
    assert passage.text == POND
    (first,) = passage.asked
    assert first.question == "When did it freeze?"
    assert [POND[start:end] for start, end in first.spans] == ["in 1987"]


def test_long_texts_are_split_between_lines(kept_out: KeptOut) -> None:
    lines = [f"{word} " + "and so on " * 90 for word in ("First", "Second", "Third")]
    text = "\n".join([*lines, "word " * 700 + "end"])
    spans = [(at, at + 5) for at in (text.index("First"), text.index("Third"), len(text) - 5)]
    asked = [Asked(f"What is number {at}?", [(at, end)]) for at, end in spans]
    found = checked(origin(), [Passage("", text, asked)], kept_out)
    assert [own.text[own.asked[0].spans[0][0] :][:5] for own in found] == ["First", "Third"]
    assert max(len(own.text.split()) for own in found) < 400


def test_questions_over_the_limit_are_drawn(kept_out: KeptOut) -> None:
    asked = [Asked(f"What is number {number}?", [(0, 8)]) for number in range(30)]
    draws = [checked(origin(max_questions=4), [Passage("", POND, asked)], kept_out) for _ in "ab"]
    assert len(draws[0][0].asked) == 4
    assert draws[0] == draws[1]


def test_the_table_of_sets() -> None:
    assert len({own.name for own in ORIGINS}) == len(ORIGINS) == 8
    assert {own.format for own in ORIGINS} == set(READERS)
    assert all(own.license and own.taken and "@" in own.repository for own in ORIGINS)


def test_the_command_writes_files_that_askline_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "a+b" / "repo"
    (copy / "data").mkdir(parents=True)
    untitled = squad(POND, ("When did it freeze?", "in 1987", 15), title="")
    (copy / "data" / "set.json").write_text(untitled)
    for command in (["init", "-q"], ["add", "."], [*AUTHOR, "commit", "-qm", "Start"]):
        subprocess.run(["git", "-C", str(copy), *command], check=True)
    kept = tmp_path / "kept.json"
    kept.write_text(squad(KEPT, ("When does it leave?", "nine", 34), title="Ferry"))
    monkeypatch.setattr(question_sets, "ORIGINS", (origin(),))
    out = tmp_path / "out"
    options = [f"--mirrors={tmp_path}", f"--out={out}", "--keep-out", f"squad1:{kept}"]
    question_sets.main(options)
    assert capsys.readouterr().out == "set: 1 texts, 1 questions\n"
    written = read_paragraphs(out / "set.json")
    assert written.repairs == ()
    assert written.paragraphs[0].article == ""
    assert [own.text for own in written.paragraphs[0].questions[0].answers] == ["in 1987"]
    missing = Origin("set", "squad", "CC0", "all", "a/b@HEAD", ("other/",))
    with pytest.raises(ValueError, match="a/b@HEAD, got none"):
        convert(missing, tmp_path, KeptOut([]))
