from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from askline.text.sentences import split_sentences

ENGLISH = {
    "two sentences": ["The lamp was lit.", "Ships could see it."],
    "titles": ["Dr. Smith met Mrs. Jones.", "They left."],
    "country": ["He moved to the U.S. Senate building.", "She stayed."],
    "country last": ["He moved to the U.S.", "The move was hard."],
    "examples": ["Eat fruit, e.g. Apples or pears.", "It helps, i.e. it cures."],
    "numbers": ["See No. 5, p. 12 and vol. II of it.", "Then stop."],
    "the answer no": ["Was it true?", "No.", "It was not."],
    "company": ["Acme Inc. was sold.", "Its owner left Acme Inc.", "It closed."],
    "saint": ["St. Petersburg is cold.", "He lives on Main St.", "The house is old."],
    "initials": ["J. R. R. Tolkien wrote it.", "L. A. Mayer read it."],
    "single digit": ["They won 7.", "Boston lost."],
    "decimals": ["It is 3.14 m long.", "Section 1.2.3 says so.", "It weighs 2.5."],
    "web": ["Visit example.com for v2.0 of it.", "Write to me@example.com.", "Nobody will."],
    "ellipsis": ["He waited... and waited.", "It was late…", "Nobody came."],
    "quotation": ['He said "Go."', "Then he left.", '"Why?" he asked.', "“No.”", "So it ended."],
    "brackets": ["It rained (hard, too).", "(It often did.)", "We left."],
    "names with marks": ["Yahoo! Inc. was sold.", "Nobody shouted!", "All was calm."],
    "citation": ["The bridge fell.[12]", "It was rebuilt.[citation needed]", "It stands."],
    "question after an abbreviation": ["Cups, plates, etc.?", "Anyone may come."],
    "several marks": ["What?!", "Really!!!", "Yes."],
    "space forgotten": ["It closed in 1973.", "The owner left."],
    "tokenized": ["It is `` old . ''", "He , too , left -LRB- early . -RRB-", "Inc. , they say ."],
    "tokenized quotation": ['He said " go . "', '" Why ? " she said .'],
    "lower-case start": ["The shop is open.", "eBay sells it too."],
    "numbered in a line": ["1. Boil the water.", "2. Add salt."],
}
FRENCH = {
    "titles": ["M. Le Pen salua Mme. Curie.", "Elle partit."],
    "era": ["Rome brûla en 390 av. J.-C. selon lui.", "Il naquit en 63 av. J.-C.", "C'est sûr."],
    "spaced marks": ["Il part !", "Pourquoi ?", "On ne sait pas."],
    "quotation": ["« Oui ! » dit-il.", "« Non. »", "Elle reste."],
    "etc": ["Il vend du pain, etc.", "L'eau est gratuite."],
}
OTHERS = {
    "Chinese": ["今天下雨。", "明天呢？", "「好！」", "他走了。"],
    "Hindi": ["वह आया।", "वह गया।"],
    "Arabic": ["أين هو؟", "لا أعرف."],
    "emoji": ["Well done!", "🎉 Next 👩\u200d🚀."],
}


@pytest.mark.parametrize("sentences", ENGLISH.values(), ids=ENGLISH.keys())
def test_split_sentences_in_english(sentences: list[str]) -> None:
    glue = "" if "1973" in sentences[0] else " "
    assert pieces(glue.join(sentences)) == sentences


@pytest.mark.parametrize("sentences", FRENCH.values(), ids=FRENCH.keys())
def test_split_sentences_in_french(sentences: list[str]) -> None:
    assert pieces(" ".join(sentences)) == sentences


@pytest.mark.parametrize("sentences", OTHERS.values(), ids=OTHERS.keys())
def test_split_sentences_in_other_scripts(sentences: list[str]) -> None:
    glue = "" if "。" in sentences[0] else " "
    assert pieces(glue.join(sentences)) == sentences


def test_split_sentences_ignores_case_in_lowercase_text() -> None:
    assert pieces('he said "go." then he left. why? nobody knows, e.g. me.') == [
        'he said "go."',
        "then he left.",
        "why?",
        "nobody knows, e.g. me.",
    ]


LINES = {
    "blank line": ("A title\n\nA text", ["A title", "A text"]),
    "blank line with spaces": ("A title\r\n \t\r\nA text", ["A title", "A text"]),
    "hard-wrapped": (
        "A line that\ngoes on. And\r\nstops.",
        ["A line that\ngoes on.", "And\r\nstops."],
    ),
    "bullets": (
        "Buy:\n- milk. Fresh\n- old\n  bread",
        ["Buy:", "- milk.", "Fresh", "- old\n  bread"],
    ),
    "numbers": ("Steps\n1. Boil\n2. Stir", ["Steps", "1. Boil", "2. Stir"]),
    "later numbers": ("Steps\n\n2. Boil\n3. Stir", ["Steps", "2. Boil", "3. Stir"]),
    "number in a paragraph": ("He was\n12. Then he grew.", ["He was\n12.", "Then he grew."]),
    "dash in a paragraph": ("The house\n– an old one – fell.", ["The house\n– an old one – fell."]),
    "heading": ("Text here\n## Title\nMore text.", ["Text here", "## Title", "More text."]),
    "underlined heading": ("Title\n=====\nText.", ["Title", "=====", "Text."]),
}


@pytest.mark.parametrize(("text", "sentences"), LINES.values(), ids=LINES.keys())
def test_split_sentences_at_lines(text: str, sentences: list[str]) -> None:
    assert pieces(text) == sentences


@pytest.mark.parametrize("text", ["", " ", "\n\r\n\t", "\u2029\x85"], ids=ascii)
def test_white_space_has_no_sentences(text: str) -> None:
    assert split_sentences(text) == []


_ALPHABET = st.sampled_from(
    ". ! ? … , ; : ( ) [ ] \" ' « » “ ” - – # * 1 a A É é I 。 ？ 」 ।".split(" ")
    + "Dr etc The -RRB- 😀 👩\u200d🚀 \u0301 \x00".split(" ")
    + [" ", "\n", "\r\n", "\t", "\u00a0", "\u2029", "\x1c"]
)


@given(st.one_of(st.text(), st.lists(_ALPHABET).map("".join)))
@example("a\x00. B\r\n\r\n\u0301😀.\u0301 C")
def test_split_sentences_covers_the_text(text: str) -> None:
    spans = split_sentences(text)
    last = 0
    for start, end in spans:
        assert last <= start < end <= len(text)
        assert not text[last:start].strip(), "a character is missing"
        assert text[start:end] == text[start:end].strip(), "white space at an end"
        last = end
    assert not text[last:].strip(), "the end is missing"


LONG = {
    "one word": "x" * 1_000_000,
    "dots without spaces": "a." * 5_000_000,
    "initials": "a. " * 300_000,
    "marks": "." * 1_000_000 + "a",
    "spaced marks": ". " * 500_000 + "a",
    "brackets": "." + ")" * 1_000_000 + "a",
    "quotations": 'Go. " ' * 150_000,
    "closing quotations": "." + " '" * 500_000 + "a",
    "spaces": "." + " " * 1_000_000 + "a",
    "empty lines": "\n" * 500_000,
    "list": "1. a\n" * 150_000,
    "rule": "-" * 1_000_000 + "a",
    "marks of other scripts": "؟" * 200_000 + "a",
    "marks of mixed scripts": "؟." * 100_000 + "a",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_split_sentences_takes_linear_time(text: str) -> None:
    began = time.process_time()
    split_sentences(text)
    assert (
        time.process_time() - began < 20
    )  # linear code takes 1 to 3 seconds, quadratic code hours


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


def test_text_without_full_stops_is_cut_into_windows() -> None:
    text = "so then we went on and on " * 20_000
    spans = split_sentences(text)
    assert max(end - start for start, end in spans) <= 300
    assert min(end - start for start, end in spans[:-1]) >= 100
    assert " ".join(text[start:end] for start, end in spans) == text.strip()


def test_windows_end_at_line_breaks_if_there_are_any() -> None:
    lines = [f"{number} GET /page/{number} took {number} ms" for number in range(200)]
    text = "\n".join(lines)
    windows = [text[start:end] for start, end in split_sentences(text)]
    assert "\n".join(windows) == text
    assert all(len(window) <= 300 for window in windows)


def test_windows_of_text_without_spaces() -> None:
    text = "x" * 2_500
    assert [end - start for start, end in split_sentences(text)] == [300] * 8 + [100]


@pytest.mark.parametrize(
    "text",
    [
        "It returns a java.util.Map that is sorted.",
        "Use celery.Task here. It is the base class.",
        "It is typed. A telnetlib.Telnet method waits.",
        "These contain text.WordCount: text.A, text.H, text.P, text.RubyBase, text.Span.",
        "The elements are form.Properties, office.EventListeners.",
        "The elements occur in anim.Par: anim.Animate, anim.Set.",
        "text.Deletion is an element.",
        "The following elements occur in number.Boolean: No element is allowed.",
        "an element.Element instance that is shown.",
    ],
)
def test_dotted_names_are_not_cut(text: str) -> None:
    spans = split_sentences(text)
    assert [text[start:end] for start, end in spans] == [
        f"{part.rstrip('.')}." for part in text.split(". ")
    ]


def test_an_ellipsis_in_quotes_does_not_end_a_sentence() -> None:
    text = 'Run an "ALTER TABLE ... RENAME TO" command. It ends... Or not.'
    parts = [text[start:end] for start, end in split_sentences(text)]
    assert parts == ['Run an "ALTER TABLE ... RENAME TO" command.', "It ends...", "Or not."]


def test_a_missing_space_is_found_before_a_word_that_starts_sentences() -> None:
    text = "It was lit in the year.The lamp was weak. It went out."
    assert len(split_sentences(text)) == 3


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It was added. (1.14.0) It works.", ["It was added. (1.14.0)", "It works."]),
        ("It was mended. [#1209]", ["It was mended. [#1209]"]),
        ("Do this. (1) Open it. (2) Close it.", ["Do this.", "(1) Open it.", "(2) Close it."]),
        ("Set the folder. (default: none)", ["Set the folder. (default: none)"]),
        ("It ended. (He was there.)", ["It ended.", "(He was there.)"]),
        ("(See et. al 2019).", ["(See et. al 2019)."]),
        ("It counts 0, 1, ... 9, 0. It ends.", ["It counts 0, 1, ... 9, 0.", "It ends."]),
        ("Use CREATE TABLE ... AS SELECT here.", ["Use CREATE TABLE ... AS SELECT here."]),
        ("it allows (hopefully!) for more", ["it allows (hopefully!) for more"]),
        ("PS. It is lit.", ["PS. It is lit."]),
    ],
)
def test_references_and_remarks_stay_with_their_sentence(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in split_sentences(text)] == sentences


def test_a_full_stop_before_a_mark_of_another_script_at_the_end() -> None:
    text = "One two three four.。Five"
    assert [text[start:end] for start, end in split_sentences(text)][-1] == "Five"


_PIECES = ["Dr", "e.g", "St", "U.S", "No", "12", "M", "word", "Word", "É", "xiv", "?", "...", "。"]
_PIECES += ["\n", "\n\n", '"', ")", "(", "»", "- ", "1. ", "text.H", ", ", "x" * 30]


@given(st.lists(st.sampled_from([*_PIECES, " ", ". ", ". ", "."]), max_size=60))
def test_the_shortcut_for_usual_ends_decides_like_the_pattern(pieces: list[str]) -> None:
    text = " ".join(pieces)
    found = split_sentences(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("askline.text.sentences._is_plain_word", lambda _: False)
        assert split_sentences(text) == found


def test_a_full_stop_between_spaces_may_be_a_character() -> None:
    text = "The characters . + - are allowed. Here tar c . is better. It ended . Then it rained."
    assert [text[start:end] for start, end in split_sentences(text)] == [
        "The characters . + - are allowed.",
        "Here tar c . is better.",
        "It ended .",
        "Then it rained.",
    ]
    assert len(split_sentences('It is "!" = not or "?" = unknown.')) == 1
    assert len(split_sentences("Send ESC [ ? 25 h to it. It works.")) == 2


def test_questions_in_brackets_belong_to_their_sentence() -> None:
    assert len(split_sentences("It is lit (see “Why? How?”). It is hot.")) == 2
    assert len(split_sentences("Is it lit (now)? It is hot.")) == 2
    assert len(split_sentences("Is it lit :( now? It is hot.")) == 2


def test_the_title_of_a_section_behind_its_number() -> None:
    assert len(split_sentences("See Chapter 2. Lamps and Oil of the manual. It is long.")) == 2
    assert len(split_sentences("It is told in Section 12. The lamp is lit.")) == 2
    assert len(split_sentences("Letters, '+' '.' '_' are used. It is hot.")) == 2
    assert len(split_sentences("“Oh! what a lamp!” she said. “It is hot.”")) == 2
    assert len(split_sentences("It works! it is hot.")) == 2
    assert len(split_sentences("It was then, oh! what a lamp. It is hot.")) == 2
