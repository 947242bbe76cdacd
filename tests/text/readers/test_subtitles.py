from __future__ import annotations

import time
from pathlib import Path

from askline.text.readers import iter_sentences
from askline.text.readers.subtitles import read_subtitles

from .samples import check, originals, read, shown

SRT = """\
1
00:00:01,000 --> 00:00:03,000
The <i>lamp</i> was lit
in the

2
00:00:03,100 --> 00:00:05,000
evening. Then it
{\\an8}went out.

3
00:00:15,000 --> 00:00:16,000
- Who was it?
- Nobody.

4
00:00:17,000 --> 00:00:18,000
[door closes]
"""
VTT = """\
WEBVTT - A talk
Kind: captions

NOTE
A note. Not text.

STYLE
::cue { color: red }

intro
00:01.000 --> 00:03.000 align:start position:0%
<v Ann>Tea &amp; milk.</v>

00:03.000 --> 00:05.000
<v Bob>No <00:03.500><c>thanks</c>.
"""


def test_cues_are_joined_into_sentences(tmp_path: Path) -> None:
    document = read(tmp_path, "a.srt", SRT)
    assert document.kind == "subtitles"
    assert shown(document) == [
        ("sentence", "The lamp was lit in the evening."),
        ("sentence", "Then it went out."),
        ("sentence", "Who was it?"),
        ("sentence", "Nobody."),
    ]
    assert originals(document)[2] == "Who was it?"
    assert [document.place(s.start).number for s in iter_sentences(document)] == [3, 8, 13, 14]
    check(document)


def test_webvtt_notes_styles_and_tags_are_left_out(tmp_path: Path) -> None:
    document = read(tmp_path, "a.vtt", VTT)
    assert shown(document) == [("sentence", "Tea & milk."), ("sentence", "No thanks.")]
    check(document)


def test_transcripts_without_punctuation_are_cut_into_windows() -> None:
    times = [f"00:{at // 60:02}:{at % 60:02}" for at in range(600)]
    cues = "".join(f"{at}.000 --> {at}.900\nsome words at {at}\n\n" for at in times)
    content = read_subtitles("WEBVTT\n\n" + cues)
    lengths = [block.end - block.start for block in content.blocks]
    assert max(lengths) < 450
    assert len(lengths) > 20


def test_lines_that_are_shown_twice_are_read_once() -> None:
    source = "00:01.000 --> 00:02.000\none\n\n00:02.000 --> 00:03.000\none\ntwo\n"
    assert read_subtitles(source).text == "one two\n"


def test_spaces_in_a_line_take_linear_time() -> None:
    start = time.process_time()
    for line in ("♪" + " " * 30_000 + "x", " " * 30_000 + "x"):
        read_subtitles(f"1\n00:00:01,000 --> 00:00:02,000\n{line}\n")
    assert time.process_time() - start < 2


def test_a_long_sentence_with_punctuation_is_not_cut(tmp_path: Path) -> None:
    parts = ["The keeper of the lamp"] + [f"walks to the tower number {n}," for n in range(19)]
    texts = [*(f"It is {n}." for n in range(20)), *parts, "and goes home."]
    cues = "".join(
        f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\n{text}\n\n" for n, text in enumerate(texts, 1)
    )
    found = shown(read(tmp_path, "a.srt", cues))
    assert " ".join(found[-1][1].split()) == " ".join([*parts, "and goes home."])
