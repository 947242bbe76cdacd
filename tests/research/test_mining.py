"""Mining: questions, their answers and titles from small documents, and what is left out."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from research.mining import build
from research.mining.documents import clean_markup, faq_markdown, read_sections
from research.mining.entries import entry_kind, from_entry
from research.mining.headings import from_heading
from research.mining.passages import MinedPassage, mine_file
from research.mining.sources import Source, debian_license, document_files, read_sources
from research.mining.statements import from_statement
from research.mining.wording import base_verb, content_words, third_person

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b.c")
FAQ = """\
# Kettle handbook

The kettle is for the people of the office, and this page tells what to do with it.

## Questions

### Why does the kettle switch itself off?

The base has a thermostat. The kettle stops because the thermostat opens at 100 degrees.

### How do I descale the kettle?

Please read this before the first use. To descale the kettle, fill it with vinegar and wait for
an hour. Then rinse the kettle twice.

### What's next?

Nothing more is to be said about the kettle and its use.

## Limits

The maximum volume of water is 1.7 litres. The lamp is blue.
"""

PAGE = """\
.TH KETTLE 1
.SH NAME
kettle \\- heat water for tea and coffee
.SH OPTIONS
.TP
\\fB\\-u\\fR, \\fB\\-\\-until\\fR \\fITIME\\fR
Keep the water warm until the given time. The default is 0.
.TP
\\fB\\-\\-silent\\fR
Do not display the clock at the end of the program.
.TP
\\fB\\-\\-help\\fR
Show the usage of the program and exit.
.TP
\\fB\\-\\-level\\fR \\fIN\\fR
Set the level of the heater in percent of its power.
"""


def mine(tmp_path: Path, name: str, text: str, seed: int = 1) -> list[MinedPassage]:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return mine_file(path, name, "Kettle", seed)


def answers(passages: list[MinedPassage]) -> dict[str, list[str]]:
    return {
        question.question: [passage.sentences[index] for index in question.answers]
        for passage in passages
        for question in passage.questions
    }


def test_headings_that_are_questions_are_answered_by_the_text_below(tmp_path: Path) -> None:
    found = answers(mine(tmp_path, "kettle.md", FAQ))
    why = found["Why does the kettle switch itself off?"]
    assert why[-1] == "The kettle stops because the thermostat opens at 100 degrees."
    how = found["How do I descale the kettle?"]
    assert how[0].startswith("To descale the kettle, fill it with vinegar")
    assert not any("Please read" in sentence for sentence in how)
    assert "What's next?" not in found


def test_a_title_does_not_have_the_heading_that_became_a_question(tmp_path: Path) -> None:
    passages = mine(tmp_path, "kettle.md", FAQ)
    for passage in passages:
        assert "descale" not in passage.title
        assert "switch itself off" not in passage.title
    assert any(passage.title == "Kettle handbook > Questions" for passage in passages)


def test_the_same_seed_gives_the_same_questions(tmp_path: Path) -> None:
    first = mine(tmp_path, "kettle.1", PAGE)
    assert first == mine(tmp_path, "kettle.1", PAGE)
    others = [mine(tmp_path, "kettle.1", PAGE, seed) for seed in range(2, 8)]
    assert any(other != first for other in others)


def test_options_of_a_man_page_keep_their_term_beside_the_description(tmp_path: Path) -> None:
    asked: dict[str, list[str]] = {}
    for seed in range(12):
        asked.update(answers(mine(tmp_path, "kettle.1", PAGE, seed)))
    golds = {gold for sentences in asked.values() for gold in sentences}
    assert "--silent: Do not display the clock at the end of the program." in golds
    assert not any("--help" in gold for gold in golds)
    stop = [question for question, gold in asked.items() if gold[0].startswith("--silent")]
    assert any("clock" in question.lower() for question in stop)
    assert any(gold[0] == "The default is 0." for gold in asked.values())


def test_a_faq_of_paragraphs_is_read_as_headings(tmp_path: Path) -> None:
    text = (
        "Frequently asked questions of the kettle and the people who use it for tea.\n\n"
        "Q: Can I boil milk in the kettle?\n\nA: No, the milk burns on the heater of the kettle.\n"
    )
    found = answers(mine(tmp_path, "faq.md", text))
    assert found["Can I boil milk in the kettle?"] == [
        "No, the milk burns on the heater of the kettle."
    ]


def test_a_document_in_another_language_has_no_questions(tmp_path: Path) -> None:
    german = "# Was ist ein Kessel?\n\nEin Kessel ist ein Topf mit Deckel, der Wasser erhitzt. " * 4
    assert mine(tmp_path, "kessel.md", german) == []


def test_sections_know_the_headings_above(tmp_path: Path) -> None:
    path = tmp_path / "kettle.rst"
    path.write_text(
        "Kettle\n======\n\nAll of it.\n\nUse\n---\n\nFill it.\n\nTea\n~~~\n\nWait.\n\n"
        "Care\n----\n\nClean it.\n",
        "utf-8",
    )
    found = {section.heading: section.path for section in read_sections(path)}
    assert found["Tea"] == ("Kettle", "Use")
    assert found["Care"] == ("Kettle",)


@pytest.mark.parametrize(
    ("sentence", "kind", "words"),
    [
        ("To enable the log, set debug to yes in the main file.", "how-to", {"enable", "log"}),
        ("You can rotate the log by sending a signal to the server.", "how-to", {"rotate", "log"}),
        ("The log file is written to /var/log/kettle.log.", "where", {"log", "file"}),
        ("The maximum size of a message is 20 megabytes.", "value", {"maximum", "size"}),
        ("The file is locked because two programs write to it.", "why", {"file", "locked"}),
        ("You must not share your password with other people.", "permission", {"my", "password"}),
        ("A codec is a program that encodes and decodes video.", "definition", {"codec"}),
        ("The cache file is cleared when the server starts again.", "when", {"cache", "cleared"}),
        ("Kettle supports hard links on all file systems.", "support", {"hard", "links"}),
    ],
)
def test_sentences_become_questions(sentence: str, kind: str, words: set[str]) -> None:
    found = 0
    for seed in range(8):
        draft = from_statement(sentence, "", random.Random(seed))
        assert draft is not None
        assert draft.kind == kind
        assert "your" not in draft.question.split()
        found += words <= set(draft.question.lower().rstrip("?").split())
    assert found


@pytest.mark.parametrize(
    "sentence",
    [
        "To do this, set debug to yes in the main file of the server.",
        "It is a program that encodes and decodes video and sound.",
        "To open a gate, the water level must match the level outside.",
        "Online outreach is a great way to share the word quickly with people.",
        "The following files are written to the folder of the server:",
    ],
)
def test_sentences_that_refer_to_others_are_left_out(sentence: str) -> None:
    assert all(from_statement(sentence, "", random.Random(seed)) is None for seed in range(8))


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("Installing the server", "how-to"),
        ("Install the Server", "how-to"),
        ("How to install the server", "how-to"),
        ("Server installation", "how-to"),
        ("When to use threads", "when"),
        ("Why is it slow to start?", "heading-question"),
        ("Overview", None),
        ("Test suite", None),
        ("Getting help", None),
        ("Questions?", None),
    ],
)
def test_headings_become_questions(heading: str, kind: str | None) -> None:
    known = frozenset({"server", "install"})
    draft = from_heading(heading, ("Kettle",), "Kettle", False, known, random.Random(3))
    assert (draft.kind if draft else None) == kind


def test_an_entry_is_asked_by_description_and_by_name() -> None:
    description = "Skip files that are newer on the receiver."
    assert entry_kind("-u, --update", False) == "option"
    asked = {
        draft.question
        for seed in range(60)
        if (draft := from_entry("-u, --update", description, "option", "copy", random.Random(seed)))
    }
    assert any(
        question.startswith(("Which", "What")) and "skips files" in question for question in asked
    )
    assert "What does --update do?" in asked
    assert any(not question.endswith("?") for question in asked)  # keywords


def test_verbs() -> None:
    assert [base_verb(word) for word in ("creating", "Runs", "copies", "table")] == [
        "create",
        "run",
        "copy",
        "",
    ]
    assert third_person("copy") == "copies"
    assert third_person("turn off") == "turns off"
    assert content_words("Installing the servers") == content_words("install server")


def test_template_calls_are_removed() -> None:
    text = 'A {{< note >}}{{< glossary_tooltip text="pod" term_id="pod" >}}<Tabs> runs.{% endif %}'
    assert clean_markup(text) == "A pod runs."


def test_a_faq_in_yaml_is_read() -> None:
    text = (
        "title: FAQ\nsections:\n  - name: All\n    questions:\n      - question: |\n"
        "          What is a kettle?\n        answer: |\n          A pot with a lid.\n"
        "      - question: Is it hot?\n        answer: Yes.\n"
    )
    lines = [line for line in faq_markdown(text).splitlines() if line]
    assert lines[0] == "# FAQ"
    assert lines[1:] == ["## What is a kettle?", "A pot with a lid.", "## Is it hot?", "Yes."]
    assert faq_markdown("a: 1\n") == ""


def test_licences_of_debian_packages() -> None:
    assert debian_license("Files: *\nLicense: GPL-3+\n\nFiles: doc\nLicense: GPL-3+\n") == "GPL-3+"
    assert "invariant" in debian_license("License: GFDL\n with the Invariant Sections being A")
    assert debian_license("License: GFDL-NIV\n with no Invariant Sections") == "GFDL-NIV"
    assert debian_license("see /usr/share/common-licenses/GPL-2") == "GPL-2"


def test_files_that_are_no_documentation_are_skipped(tmp_path: Path) -> None:
    names = ["docs/use.md", "docs/CHANGELOG.md", "docs/de/use.md", "src/a.py"]
    names += ["docs/git/use.md", "docs/flask/use.md", "docs/site-policy/terms.md"]  # kept out
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    source = Source("git", "a/b", under=("docs",))
    assert [path.name for path in document_files(source, tmp_path)] == ["use.md"]
    assert len(list(document_files(source, tmp_path))) == 1


def test_the_list_of_sources() -> None:
    sources = read_sources(build.SOURCES)
    ids = [source.id for source in sources]
    assert len(set(ids)) == len(ids) > 60
    assert set(ids) >= build.DEV
    assert all(source.license for source in sources if source.manager == "git")


def test_build_writes_train_and_dev_and_keeps_sources_out(tmp_path: Path) -> None:
    lines = []
    for name in ("x/train", "letsencrypt/website", "x/kept"):
        work = tmp_path / "work" / name
        work.mkdir(parents=True)
        (work / "faq.md").write_text(FAQ.replace("kettle", name.split("/")[1]), "utf-8")
        bare = tmp_path / "mirrors" / name.replace("/", "+") / "repo"
        for command in (
            ["git", "init", "-q", str(work)],
            ["git", "-C", str(work), "add", "."],
            ["git", "-C", str(work), *AUTHOR, "commit", "-qm", "Start"],
            ["git", "clone", "-q", "--bare", str(work), str(bare)],
        ):
            subprocess.run(command, check=True)
        lines.append(f"git\t{name}\tMIT\tKettle")
    (tmp_path / "sources.tsv").write_text("\n".join(lines))
    (tmp_path / "out.txt").write_text("# sets\ngithub:x/kept\n")
    options = [f"--{name}={tmp_path / name}" for name in ("cache", "mirrors", "out")]
    options += [f"--sources={tmp_path / 'sources.tsv'}", f"--keep-out={tmp_path / 'out.txt'}"]
    build.main([*options, "--no-table", "--workers=1"])
    for part, source in (("train", "git:x/train"), ("dev", "git:letsencrypt/website")):
        text = (tmp_path / "out" / f"{part}.jsonl").read_text("utf-8")
        records = [json.loads(line) for line in text.splitlines()]
        assert {record["source"] for record in records} == {source}
        assert {record["license"] for record in records} == {"MIT"}
        questions = [question for record in records for question in record["questions"]]
        assert len(questions) >= 2
        for record in records:
            for question in record["questions"]:
                assert max(question["answers"]) < len(record["sentences"])
