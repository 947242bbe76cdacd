"""
Read subtitles (SRT and WebVTT) with exact offsets back into the source.

The text of consecutive cues is joined, so that a sentence may run over several cues. A block ends
at a pause, at a change of speaker, and after a few hundred characters at the end of a sentence, or
anywhere in automatic transcripts, which have no punctuation. Times, cue names, styles and notes are
left out, and so are lines that repeat the line before them and sounds in brackets.
"""

from __future__ import annotations

import re
from html import unescape

from .document import Content
from .markup import LineSpan, MarkupWriter, Replacement, SourceLines

__all__ = [
    "read_subtitles",
]

_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING = re.compile(rf"\s*{_TIME}[ \t]*-->[ \t]*{_TIME}")
_DROPPED_BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|\Z)|WEBVTT|X-TIMESTAMP-MAP")
_SPEAKER = re.compile(r"\s*(?:<v[ .][^>]*>|[-–—]\s*(?=\S)|>{2,}\s*|&gt;&gt;\s*)")
_SOUND = re.compile(r"(?:\[[^\]]*\]|\([^)]*\)|[♪♫#](?:[♪♫#\s]*[♪♫#])?)\s*:?\Z")
_TOKEN = re.compile(
    r"(?P<gone><[^<>\n]{1,200}>|\{\\[^{}\n]{1,200}\}|[♪♫])|&(?:\#\d{1,7}|[a-z]{2,8});"
)
_LINE_END_MARK = re.compile(r"[.?!…。？！][\"”’']?[ \t]*(?=\s)")
_PAUSE_SECONDS = 3.0
_SENTENCE_END = (".", "?", "!", "…", '."', '?"', '!"', ".”", "?”", "!”", "。", "？", "！")
_MIN_CHARACTERS = 200
_MAX_CHARACTERS = 400
_MAX_PUNCTUATED_CHARACTERS = 1000
_CHARACTERS_PER_SENTENCE = 300  # of the file, times and numbers included, with punctuation


def read_subtitles(source: str) -> Content:
    """Text and blocks; subtitles have no title."""
    lines = SourceLines(source)
    reader = _SubtitleReader(lines)
    reader.read()
    return reader.writer.content()


class _SubtitleReader:
    """Collects the lines of cues until a block ends."""

    def __init__(self, lines: SourceLines) -> None:
        self.lines = lines
        self.writer = MarkupWriter(lines, _find_marks)
        self._spans: list[LineSpan] = []
        self._length = 0
        self._last_line = ""
        ends = len(_LINE_END_MARK.findall(lines.source))
        is_punctuated = ends * _CHARACTERS_PER_SENTENCE >= len(lines.source)
        self._most = _MAX_PUNCTUATED_CHARACTERS if is_punctuated else _MAX_CHARACTERS

    def read(self) -> None:
        at = 0
        ended = 0.0  # the time at which the last cue disappeared, in seconds
        in_cue = False
        dropped = False
        for at in range(len(self.lines)):
            line = self.lines.text(at)
            timing = _TIMING.match(line)
            if timing:
                start, end = _seconds(timing, 1), _seconds(timing, 5)
                if start - ended > _PAUSE_SECONDS:
                    self._end_block()
                ended, in_cue, dropped = end, True, False
            elif not line.strip():
                in_cue = dropped = False
            elif in_cue:
                self._add_line(at, line)
            elif not dropped and _DROPPED_BLOCK.match(line.lstrip("\ufeff")):
                dropped = True
        self._end_block()

    def _add_line(self, number: int, line: str) -> None:
        speaker = _SPEAKER.match(line)
        shown = self.writer.visible(line[speaker.end() :] if speaker else line)
        if not shown or _SOUND.match(shown.strip()) or shown == self._last_line:
            return
        self._last_line = shown
        start, end = self.lines.span(number)
        if speaker:
            self._end_block()
            start += speaker.end()
        self._spans.append((start, end))
        self._length += len(shown) + 1
        ends = shown.endswith(_SENTENCE_END)
        if self._length > (_MIN_CHARACTERS if ends else self._most):
            self._end_block()

    def _end_block(self) -> None:
        if self._spans:
            self.writer.add(self._spans)
        self._spans, self._length = [], 0


def _seconds(timing: re.Match[str], group: int) -> float:
    hours, minutes, seconds, fraction = (timing[group + at] or "0" for at in range(4))
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")


def _find_marks(text: str) -> list[Replacement]:
    """The spans of tags, positions and entities."""
    if "<" not in text and "{" not in text and "&" not in text and "♪" not in text:
        return []
    return [
        (*token.span(), "" if token["gone"] else unescape(token[0]))
        for token in _TOKEN.finditer(text)
    ]
