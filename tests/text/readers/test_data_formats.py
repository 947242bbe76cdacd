"""JSON, YAML, settings, XML, logs and RTF: formats that keep exact offsets."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from askline.errors import DataError
from askline.text.readers import iter_sentences, read_document

from .samples import check, originals, read, refusal, shown


def contexts(document: object) -> list[tuple[str, ...]]:
    return [each.context.headings for each in iter_sentences(document)]  # type: ignore[arg-type]


def texts(document: object) -> list[str]:
    return [text for kind, text in shown(document) if kind != "heading"]  # type: ignore[arg-type]


# JSON

PACKAGE = """{
  "name": "lamp",
  "description": "Lights the tower. At \\u201cdusk\\u201d.",
  "keywords": ["sea", "tower"],
  "lamp": {"fuel": "oil", "shutter": {"metal": "brass"}, "watts": 1500, "on": true, "old": null},
  "keepers": [{"name": "Ann", "duty": "She lights it."}, {"duty": "He winds the clock."}],
  "hash": "9f86d081884c7d659a2feaa0c55ad015", "points": [1, 2, 3]
}"""


def test_json_keys_are_headings_and_values_have_their_keys(tmp_path: Path) -> None:
    document = read(tmp_path, "a.json", PACKAGE)
    assert texts(document) == [
        "Lights the tower.",
        "At “dusk”.",
        "keywords: sea, tower",
        "fuel: oil",
        "metal: brass",
        "watts: 1500",
        "on: true",
        "duty: She lights it.",
        "duty: He winds the clock.",
    ]
    found = dict(zip([text for _, text in shown(document)], contexts(document), strict=True))
    assert found["metal: brass"] == ("lamp", "lamp", "shutter")
    assert found["watts: 1500"] == ("lamp", "lamp")
    assert found["duty: She lights it."] == ("lamp", "keepers", "Ann")
    assert found["duty: He winds the clock."] == ("lamp", "keepers")
    slices = dict(zip([text for _, text in shown(document)], originals(document), strict=True))
    assert slices["fuel: oil"] == 'fuel": "oil'
    assert slices["At “dusk”."] == "At \\u201cdusk\\u201d."
    check(document)


def test_json_with_comments_is_read_and_a_truncated_file_is_reported(tmp_path: Path) -> None:
    document = read(tmp_path, "a.jsonc", '// "no": 1\n{"a": "b c", /* "x": */ "d": "e // f",}')
    assert texts(document) == ["a: b c", "d: e // f"]
    assert not document.problems
    cut = read(tmp_path, "b.json", '{"a": "One two.", "b": "Three fo')
    assert texts(cut) == ["a: One two."]
    assert [problem.message[:30] for problem in cut.problems] == ["It ends in the middle of a val"]
    assert "It is not JSON" in refusal(tmp_path, "c.json", "plain text")
    assert "no text" in refusal(tmp_path, "d.json", "[1, 2, {}]")


def test_an_object_in_a_list_is_one_line(tmp_path: Path) -> None:
    source = """[{"name": "Karaman", "code": "TR-70", "type": "Province"},
    {"code": "DE", "name": "Germany", "about": "It has sixteen states. They are old."},
    {"code": "FR", "parts": ["A", "B"], "size": 3}]"""
    document = read(tmp_path, "a.json", source)
    assert shown(document) == [
        ("heading", "Karaman"),
        ("sentence", "code: TR-70, type: Province"),
        ("heading", "Top level"),
        ("sentence", "code: DE, name: Germany"),
        ("sentence", "about: It has sixteen states."),
        ("sentence", "They are old."),
        ("sentence", "code: FR"),
        ("sentence", "parts: A, B"),
        ("sentence", "size: 3"),
    ]
    assert originals(document)[1] == 'code": "TR-70", "type": "Province'
    check(document)
    yaml = read(tmp_path, "a.yaml", "- code: FR\n  size: 3\n- code: DE\n  size: 4\n")
    assert texts(yaml) == ["code: FR, size: 3", "code: DE, size: 4"]


def test_a_vocabulary_is_no_text(tmp_path: Path) -> None:
    vocabulary = {f"word{number}": number for number in range(5_000)}
    document = read(tmp_path, "a.json", json.dumps({"name": "Lamp", "vocab": vocabulary}))
    assert len(texts(document)) == 100


JSON_VALUES = st.recursive(
    st.text(max_size=8) | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(value=JSON_VALUES, ascii_only=st.booleans())
def test_any_json_has_exact_offsets(
    tmp_path_factory: pytest.TempPathFactory, value: object, ascii_only: bool
) -> None:
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_text(json.dumps(value, ensure_ascii=ascii_only, indent=1), "utf-8", "surrogatepass")
    with contextlib.suppress(DataError):  # if there is no text in it
        check(read_document(path))


# YAML and settings

YAML = """# The lamp of the tower. It is old.
lamp:
  fuel: oil   # not gas
  "on": true
  notes: |
    It turns once.
    It stops in fog.

    Clean it.
  warning: >-
    Do not look
    into the light.
keepers:
- name: Ann
  duty: "She \\"lights\\"
    the lamp."
- duty: He winds the clock
    every morning.
colors: [red, green]
steps:
  - Climb the stairs.
  - red
  - green
# port: 80
---
next: &anchor one two
other: *anchor
"""


def test_yaml_by_its_lines(tmp_path: Path) -> None:
    document = read(tmp_path, "a.yaml", YAML)
    assert texts(document) == [
        "The lamp of the tower.",
        "It is old.",
        "fuel: oil, not gas",
        "on: true",
        "It turns once.",
        "It stops in fog.",
        "Clean it.",
        "warning: Do not look into the light.",
        'duty: She "lights" the lamp.',
        "duty: He winds the clock every morning.",
        "colors: red, green",
        "Climb the stairs.",
        "red, green",
        "next: one two",
    ]
    found = dict(zip([text for _, text in shown(document)], contexts(document), strict=True))
    assert found["fuel: oil, not gas"] == ("lamp",)
    assert found['duty: She "lights" the lamp.'] == ("keepers", "Ann")
    assert found["duty: He winds the clock every morning."] == ("keepers",)
    slices = dict(zip([text for _, text in shown(document)], originals(document), strict=True))
    assert slices["fuel: oil, not gas"] == "fuel: oil   # not gas"
    assert slices["warning: Do not look into the light."].endswith("into the light.")
    assert str(document.place(document.text.index("Clean"))) == "line 9"
    check(document)


SETTINGS = """; Settings of the tower.
title = "Lighthouse"
[lamp]
power = 1500 # in watts
fuel: "oil"
text = \"\"\"
It turns
once.\"\"\"
[[keepers]]
name = 'Ann'
duty = "Lights the lamp."
"""


def test_settings_with_sections(tmp_path: Path) -> None:
    document = read(tmp_path, "a.toml", SETTINGS)
    assert texts(document) == [
        "Settings of the tower.",
        "power: 1500, in watts",
        "fuel: oil",
        "It turns once.",
        "duty: Lights the lamp.",
    ]
    found = dict(zip([text for _, text in shown(document)], contexts(document), strict=True))
    assert found["power: 1500, in watts"] == ("Lighthouse", "lamp")
    assert found["duty: Lights the lamp."] == ("Lighthouse", "Ann")
    check(document)
    properties = read(
        tmp_path, "a.properties", "! A comment of the file.\nlogin.failed=Try again.\n"
    )
    assert texts(properties) == ["A comment of the file.", "login.failed: Try again."]


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("a.yaml", "size: 20  # raised in June\n", ["size: 20, raised in June"]),
        ("a.yaml", 'key: "a # b."  # what it means\n', ["key: a # b.", "what it means"]),
        (
            "a.yaml",
            "url: http://x/#top\nno: null  # not set yet\n",
            ["url: http://x/#top", "not set yet"],
        ),
        ("a.yaml", "lamp:  # in the tower\n  fuel: oil\n", ["in the tower", "fuel: oil"]),
        ("a.toml", 'key = "a # b"  # what it means\n', ["key: a # b, what it means"]),
        ("a.ini", "size = 20  ; raised in June\n", ["size: 20, raised in June"]),
        ("a.toml", "size = 20  # noqa\n", ["size: 20"]),
    ],
)
def test_a_comment_behind_a_value_is_read_with_it(
    tmp_path: Path, name: str, source: str, expected: list[str]
) -> None:
    document = read(tmp_path, name, source)
    assert texts(document) == expected
    check(document)


# XML

BOOK = """<?xml version="1.0"?>
<!DOCTYPE book [<!ENTITY tower "a < b">]>
<book><title>The tower</title>
<chapter><title>The lamp</title>
<para>It burns <emphasis>oil</emphasis> &amp; gas. The &tower; is&#32;old.</para>
<programlisting>lamp.on()</programlisting>
<table><thead><row><entry>Part</entry><entry>Metal</entry></row></thead>
<tbody><row><entry>Shutter</entry><entry>Brass</entry></row></tbody></table>
<note><![CDATA[Do not look <at> it.]]></note></chapter>
<x:config><port>8080</port><empty/></x:config></book>"""


def test_xml_titles_text_tables_and_values(tmp_path: Path) -> None:
    document = read(tmp_path, "a.xml", BOOK)
    assert shown(document) == [
        ("heading", "The tower"),
        ("heading", "The lamp"),
        ("sentence", "It burns oil & gas."),
        ("sentence", "The &tower; is old."),
        ("code", "lamp.on()"),
        ("columns", "Part\nMetal"),
        ("row", "Shutter\nBrass"),
        ("sentence", "Do not look <at> it."),
        ("sentence", "port: 8080"),
    ]
    assert contexts(document)[2] == ("The tower", "The lamp")
    assert originals(document)[2] == "It burns <emphasis>oil</emphasis> &amp; gas."
    assert (document.title, document.unit) == ("The tower", "line")
    check(document)


def test_entities_of_xml_are_never_expanded(tmp_path: Path) -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 20))
    bomb = f'<!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]><x><p>Text &l19; here.</p></x>'
    assert texts(read(tmp_path, "a.xml", bomb)) == ["Text &l19; here."]
    outside = '<!DOCTYPE x SYSTEM "file:///etc/passwd"><x><p>Text here.</p></x>'
    assert texts(read(tmp_path, "b.xml", outside)) == ["Text here."]


# Logs


def test_every_line_of_a_log_is_a_unit(tmp_path: Path) -> None:
    log = "10:00 INFO lit\n10:01 ERROR no oil\n  at lamp.c:3\n  at main.c:1\n"
    log += "\x1b[31m10:02 WARN\x1b[0m fog"
    document = read(tmp_path, "a.log", log)
    assert shown(document) == [
        ("sentence", "10:00 INFO lit"),
        ("sentence", "10:01 ERROR no oil"),
        ("code", "at lamp.c:3\n  at main.c:1"),
        ("sentence", "10:02 WARN fog"),
    ]
    assert originals(document)[-1] == "10:02 WARN\x1b[0m fog"
    assert str(document.place(document.text.index("fog"))) == "line 5"
    check(document)


# RTF

LETTER = r"""{\rtf1\ansi\ansicpg1252
{\fonttbl{\f0 Arial;}{\f1\fcharset204 Arial;}{\f2\fcharset128 M;}}
{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}{\s2\outlinelevel1 heading 2;}}
{\info{\title The tower}{\author Ann}}{\header Page 1}
\pard\s1 The tower\par\pard\s2 The lamp\par
\pard\s0 It is a caf\'e9, {\b not} an inn\u8212?it{\v hidden} burns. {\*\unknown x}Next\~one.\par
{\f1\'cf\'f0\'e8\'e2\'e5\'f2.}\line{\f2\'93\'fa.}\u-10179?\u-8704?\par
\trowd\pard\intbl Part\cell Metal\cell\row\trowd\pard\intbl Shutter\cell Brass\cell\row
\pard{\pict 89504e47}Last.\par}"""


def test_rtf_paragraphs_headings_characters_and_tables(tmp_path: Path) -> None:
    document = read(tmp_path, "a.rtf", LETTER)
    assert shown(document) == [
        ("heading", "The tower"),
        ("heading", "The lamp"),
        ("sentence", "It is a café, not an inn—it burns."),
        ("sentence", "Next\xa0one."),
        ("sentence", "Привет."),
        ("sentence", "日.😀"),
        ("row", "Part\nMetal"),
        ("row", "Shutter\nBrass"),
        ("sentence", "Last."),
    ]
    assert contexts(document)[2] == ("The tower", "The lamp")
    assert originals(document)[3] == r"Next\~one."
    assert originals(document)[4] == r"\'cf\'f0\'e8\'e2\'e5\'f2."
    assert document.title == "The tower"
    assert str(document.place(document.text.index("Next"))) == "paragraph 3"
    check(document)


def test_a_file_that_is_no_rtf_is_refused(tmp_path: Path) -> None:
    assert "It is not an RTF file" in refusal(tmp_path, "a.rtf", "text")


@pytest.mark.parametrize(
    ("suffix", "unit"),
    [
        ("json", '["'),
        ("json", '{"a":{'),
        ("json", "/*"),
        ("yaml", "- "),
        ("yaml", "a: "),
        ("yaml", '"a\n'),
        ("yaml", "a:\n "),
        ("toml", '"""'),
        ("toml", "[a\n"),
        ("xml", "<a>"),
        ("xml", "<!--"),
        ("xml", "<![CDATA["),
        ("xml", "<!DOCTYPE a ["),
        ("xml", "<a b='"),
        ("rtf", "{"),
        ("rtf", "\\'e9"),
        ("rtf", "\\u1 "),
        ("log", "\x1b["),
        ("py", '"""'),
        ("py", "def a():\n # b c\n"),
        ("py", "'''a"),
        ("js", "/*"),
        ("js", "/** a word */ f("),
        ("js", "`\\"),
        ("js", "// a word\n"),
        ("lua", "--[==["),
        ("rs", 'r#"'),
        ("pl", "=head1 a\n"),
        ("hs", "{-"),
    ],
)
def test_long_repetitions_take_linear_time(tmp_path: Path, suffix: str, unit: str) -> None:
    start = {"json": '{"k": "some text", "x": ', "rtf": "{\\rtf1 Text. "}.get(suffix, "")
    content = start + unit * (200_000 // len(unit))
    path = tmp_path / f"a.{suffix}"
    path.write_text(content)
    began = time.process_time()
    with contextlib.suppress(DataError):
        list(iter_sentences(read_document(path)))
    assert time.process_time() - began < 5


def test_a_tag_with_a_long_name_takes_linear_time(tmp_path: Path) -> None:
    source = "<a>Text is here.</a><b" + "愿琼" * 60_000
    started = time.process_time()
    document = read(tmp_path, "a.xml", source)
    assert time.process_time() - started < 5
    assert shown(document)[0][1].startswith("Text is here.")


def test_a_comment_of_one_long_word_takes_linear_time(tmp_path: Path) -> None:
    started = time.process_time()
    read(tmp_path, "a.properties", f"# {'a' * 40_000}=#\nport = 8080\n")
    assert time.process_time() - started < 2


def test_pointers_of_json_schema_are_left_out(tmp_path: Path) -> None:
    source = '{"$schema": "https://a.org/b", "lamp": {"$ref": "#/lamps/one", "oil": "two liters"}}'
    assert ("sentence", "oil: two liters") in shown(read(tmp_path, "a.json", source))
    assert not any("$" in text for _, text in shown(read(tmp_path, "a.json", source)))


def test_a_link_of_restructuredtext_in_a_value_is_its_text(tmp_path: Path) -> None:
    source = "notes:\n  - If you use `the lamp <https://a.org>`__ then it is lit.\n"
    found = shown(read(tmp_path, "a.yaml", source))
    assert found[-1] == ("sentence", "If you use the lamp then it is lit.")
