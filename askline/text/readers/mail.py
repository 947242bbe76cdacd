"""
Read e-mail: single messages (EML) and mailboxes (mbox).

The subject is the title, and in a mailbox each message is a part of the document. Of a message with
alternatives, the plain text is read, or else the HTML. Headers, attachments, greetings, signatures
and quoted replies are left out. Parts are encoded for transport, each with its own charset, so that
there are no offsets into the file: places are paragraphs of a message, or messages of a mailbox.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from .document import Blocks, Content, DocumentPart, UnreadableError
from .html import read_html
from .kinds import BlockKind, PlaceUnit

if TYPE_CHECKING:
    from email.message import EmailMessage

__all__ = [
    "read_mail",
]

_SEPARATOR = re.compile(
    rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From (?=[^\r\n]*\r?\n)[^\r\n]*\d\d:\d\d[^\r\n]*\r?\n"
)
_ESCAPED_FROM = re.compile(rb"^>(?=>*From )", re.MULTILINE)
_QUOTED = re.compile(r"[ \t]*(?:>|\|[ \t]|[A-Z]{2,3}>[ \t])")
_SUBJECT_TAGS = re.compile(r"(?:\s*(?:\[[^\[\]]*\]|(?:Re|Fwd?|Aw):))+\s*", re.IGNORECASE)
_ATTRIBUTION = re.compile(
    r"(?:On|At|In|Am|Le|El|Op|Il)\b.{4,300}"
    r"(?:wrote|writes|said|schrieb|écrit|escribió|schreef|scritto)[^\n]{0,80}:\s*\Z",
    re.DOTALL,
)
_SHORT_ATTRIBUTION = re.compile(
    r".{2,120}\b(?:wrote|writes):\s*\Z|Excerpts from .{4,120} message of .{4,60}:\s*\Z"
    r"|[^\n]{2,120}@\S{2,80}[ ](?:wrote|writes)\b.{0,60}:\s*\Z"
    r"|[^\n]{0,60}\d:\d\d[^\n]{1,60}(?:@|[ ]at[ ])[\w-]{1,40}\.[^\n]{1,60}:\s*\Z"
)
_FULL_LINE_CHARACTERS = 71
"""A line of a quote that has no room for the next word was wrapped behind it."""
_MAX_WRAPPED_LINES = 2
_REPLY_HEADER = re.compile(
    r"-{2,}[ ]?(?:Original|Forwarded|Ursprüngliche)[^\n]*-{2,}|_{20,}\s*\Z|From:[ \t].*@"
)
_SIGNATURE = re.compile(r"--[ ]?\Z")
# The start of a diff, of one of its parts, or of the list of changed files above it.
_PATCH = re.compile(
    r"^(?:diff --git |--- (?:a/)?\S+\n\+\+\+ |@@ -\d+,?\d* \+\d|---\n(?= \S.* \| +\d)"
    r"| [\w./{}=> -]{1,200}? \| +\d+ [+-]+\n)",
    re.MULTILINE,
)
_TRAILER = re.compile(
    r"^(?:\[[^\[\]\n]{1,60}\][ ])?"
    r"(?:Signed-off|Acked|Reviewed|Tested|Reported|Suggested|Co-authored)[- ]by:.*\n?"
    r"|^Cc:.*@.*\n?",
    re.MULTILINE | re.IGNORECASE,
)
_GREETING = re.compile(
    r"\s*(?:Hi|Hello|Hey|Dear|Hallo|Bonjour)"
    r"(?:[ ](?:[A-Z][\w.-]{0,20}|(?:to )?all|there|everyone|folks)){0,3}[,!.:]?[ \t]*(?:\n|\Z)"
)
_CLOSING = (
    r"(?:(?:[Mm]any |[Ww]ith )?(?:[Tt]hanks|[Tt]hank you|THANKS|[Cc]heers|[Rr]egards)"
    r"|(?:[Bb]est|[Kk]ind|[Ww]arm(?:est)?) (?:[Rr]egards|[Ww]ishes)|[Bb]est|[Ss]incerely"
    r"|[Yy]ours(?: \w{1,12})?|[Hh]appy hacking|(?:[Mm]it )?(?:freundlichen|besten) Grüßen"
    r"|[Vv]iele Grüße|[Cc]ordialement)(?: again| in advance)?[,.!！]{0,3}"
)
_NAME = r"[-–—~ ]{0,4}[A-Z]\w{0,20}(?:[ ][A-Z](?:\w{0,20}|\.)){0,2}"
_SIGN_OFF = re.compile(
    rf"\s*(?:{_CLOSING}(?:\s+{_NAME})?|[-–—~]{{1,2}}[ ]?[a-z]\w{{0,20}}"
    r"|[-–—~][-–—~ ]{0,3}[A-Z]\w{0,20}|[A-Z]\w{0,20}(?:[ ][A-Z](?:\w{0,20}|\.)){1,2})\s*"
)
"""A closing phrase, a name, or both, at the end of a message; one word alone may be an answer."""
_SIGN_OFF_ANYWHERE = re.compile(
    rf"\s*(?:{_CLOSING}(?:\s+{_NAME})?|[-–—~]{{1,2}}[ ]?[A-Za-z]\w{{0,20}})\s*"
)
"""The same elsewhere, without a name alone; a footnote may follow it."""
_MAX_SIGN_OFF_CHARACTERS = 200
_MAX_SIGNATURE_LINES = 4  # below the name of the sender
_MIN_NICKNAME_CHARACTERS = 3
_NAME_LINE = re.compile(r"[-–—~\s]{0,99}[^\W\d_]{1,39}(?:[ .'-]{1,2}[^\W\d_]{1,39}){0,3}[.,]?\s*")
_WORD = re.compile(r"[^\W\d_]+")
_ASSIGNMENT = re.compile(r"[ \t]{0,99}[\w.\[\]>*-]{1,80}[ \t]{0,20}=[ \t]{0,20}[^\s=]{1,80}\Z")
_COMPILER_LINE = re.compile(
    r"\s*(?:\S{1,200}:(?:\d{1,6}:){0,2} ?(?:error|warning|note|In function)\b"
    r"|(?:error|warning): |/\S{1,80}/ld: |(?:ccache )?(?:gcc|g\+\+|cc|clang|make) [^\n]*[ ]-\w)"
)
_LOG_LINE = re.compile(
    r"\s*(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d)"
)
_SHORTLOG = re.compile(r"\S[^\n]{1,60} \(\d{1,4}\):?\n(?:[ \t]+\S[^\n]*(?:\n|\Z))+")
"""The changes of one author, as `git shortlog` lists them."""
_SCRIPT = "#!"
_LEAST_REPEATED_LINES = 3
_CODE_ENDS = ("{", "}", ";", "*/", "\\", ".o")
_CODE_STARTS = ("#include ", "#define ", "#if ", "#ifdef ", "$ ")
_INDENT = re.compile(r"(?:\t|[ ]{2})")
_SENTENCE_ENDS = (".", "!", "?", ":", ",", ";")
_ITEM = re.compile(r"\s*(?:[-*+•]|\(?\w{1,3}[.)])\s")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_MAX_HEADER_CHARACTERS = 2_000
_PGP = re.compile(r"-----(BEGIN|END) PGP (?P<what>[A-Z ]+)-----|Hash: \S+\s*\Z")


def read_mail(data: bytes) -> Content:
    """Text, blocks, title and, for a mailbox, one part per message."""
    separators = [match.span() for match in _SEPARATOR.finditer(data)]
    mail = _Mail()
    if not separators or separators[0][0] != 0:
        title = mail.add_message(_parse(data))
        return mail.content("paragraph", title)
    parts = []
    ends = [start for start, _ in separators[1:]] + [len(data)]
    for number, ((_, start), end) in enumerate(zip(separators, ends, strict=True), 1):
        message = _parse(_ESCAPED_FROM.sub(b"", data[start:end]))
        first = mail.start_message()
        title = mail.add_message(message)
        if mail.length > first:
            identifier = _header(message, "Message-ID").strip("<>")
            parts.append(DocumentPart(first, mail.length, identifier, title, number))
    return mail.content("message", "", tuple(parts))


def _parse(data: bytes) -> EmailMessage:
    from email import policy  # imported here because most files do not need it
    from email.headerregistry import HeaderRegistry
    from email.parser import BytesParser

    registry = HeaderRegistry()
    short = policy.default.clone(  # the library takes quadratic time for a long header
        header_factory=lambda name, value: registry(name, value[:_MAX_HEADER_CHARACTERS])
    )
    try:
        message = BytesParser(policy=short).parsebytes(data)
    except (RecursionError, ValueError, LookupError) as error:
        raise UnreadableError("It is not an e-mail message, or it is damaged.") from error
    return message


class _Mail:
    """Collects the text of messages."""

    def __init__(self) -> None:
        self.length = 0
        self._pieces: list[str] = []
        self._blocks = Blocks()
        self._paragraphs = array("I")
        self._messages = array("I")

    def content(self, unit: PlaceUnit, title: str, parts: tuple[DocumentPart, ...] = ()) -> Content:
        starts = self._messages if unit == "message" else self._paragraphs
        return Content("".join(self._pieces), self._blocks, unit, starts, title, parts=parts)

    def start_message(self) -> int:
        """Record where a message starts, and return it."""
        self._messages.append(self.length)
        return self.length

    def add_message(self, message: EmailMessage) -> str:
        """
        Append the text of a message and return its subject.

        If the message is nothing but a patch, the subject is its text: it says what the patch does.
        """
        subject = " ".join(_header(message, "Subject").split())
        for part in _text_parts(message):
            text = _decode(part)
            if part.get_content_subtype() == "html":
                self._add_content(read_html(text))
            else:
                prose, patch = _split_patch(_TRAILER.sub("", _own_text(text)))
                if patch and not prose.strip():
                    prose = _SUBJECT_TAGS.sub("", subject)
                for paragraph, kind in _joined(_paragraphs(prose, _sender(message))):
                    self._add_paragraph(paragraph, kind)
                self._add_paragraph(patch.strip("\n"), "code")
        return subject

    def _add_content(self, content: Content) -> None:
        base = self.length
        for block in content.blocks:
            self._paragraphs.append(base + block.start)
            self._blocks.add(base + block.start, base + block.end, block.kind, block.level)
        self._pieces.append(content.text)
        self.length += len(content.text)

    def _add_paragraph(self, text: str, kind: BlockKind = "text") -> None:
        if text.strip():
            self._paragraphs.append(self.length)
            self._blocks.add(self.length, self.length + len(text), kind)
            self._pieces += (text, "\n\n")
            self.length += len(text) + 2


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message.get(name, ""))
    except (ValueError, IndexError, LookupError, AttributeError):  # a malformed header
        return ""


def _text_parts(message: EmailMessage) -> Iterator[EmailMessage]:
    """The parts to read, in order. Of alternatives, the first that has text is one of them."""
    stack = [message]  # no recursion: parts may be nested
    while stack:
        part = stack.pop()
        if part.get_content_disposition() == "attachment":
            continue
        if part.is_multipart():
            parts = cast("list[EmailMessage]", part.get_payload())
            if part.get_content_subtype() == "alternative":
                plain = [item for item in parts if item.get_content_type() == "text/plain"]
                plain = [item for item in plain if _decode(item).strip()]
                parts = plain[:1] or parts[-1:]
            stack += reversed(parts)
        elif part.get_content_type() in ("text/plain", "text/html"):
            yield part


def _decode(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    for charset in (part.get_content_charset() or "utf-8", "utf-8"):
        try:
            return data.decode(charset).replace("\r\n", "\n")
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", errors="replace").replace("\r\n", "\n")


def _sender(message: EmailMessage) -> frozenset[str]:
    """The words of the name and address of the sender, and their first letters, in lowercase."""
    words = [word.lower() for word in _WORD.findall(_header(message, "From"))]
    return frozenset(words + [word[0] for word in words])


def _own_text(text: str) -> str:
    """The text without quoted replies, what introduces them, and the signature."""
    kept: list[str] = []
    in_signature = False  # of OpenPGP
    lines = text.split("\n")
    wrapped_until = 0  # the end of lines that belong to the quote above them
    for number, line in enumerate(lines):
        pgp = _PGP.match(line)
        if pgp:
            in_signature = pgp["what"] == "SIGNATURE" and line.startswith("-----BEGIN")
        elif in_signature or number < wrapped_until:
            continue
        elif _QUOTED.match(line):
            _drop_attribution(kept)
            wrapped_until = number + 1 + _wrapped_lines(lines, number)
        elif _SIGNATURE.match(line) or _REPLY_HEADER.match(line):
            break
        else:
            kept.append(line)
    return "\n".join(kept)


def _wrapped_lines(lines: list[str], quoted: int) -> int:
    """
    How many lines below a line of a quote are its end, which a mail program wrapped unmarked.

    The line has no room for the next word and does not end a sentence, and the quote goes on below;
    or it ends there and the next word is in lowercase.
    """
    above = lines[quoted].rstrip()
    below = lines[quoted + 1 : quoted + 2 + _MAX_WRAPPED_LINES]
    count = next((at for at, line in enumerate(below) if _QUOTED.match(line)), 0)
    first = below[0].split() if below else []
    if not count and len(below) > 1 and first and first[0][0].islower() and not below[1].strip():
        count = 1
    is_full = bool(first) and len(above) + 1 + len(first[0]) > _FULL_LINE_CHARACTERS
    return count if is_full and not above.endswith((".", "!", "?", ":")) else 0


def _split_patch(text: str) -> tuple[str, str]:
    """The text before a patch, and the patch with the list of its files, up to the end."""
    found = _PATCH.search(text)
    return (text, "") if found is None else (text[: found.start()], text[found.start() :])


def _paragraphs(prose: str, sender: frozenset[str]) -> Iterator[tuple[str, BlockKind]]:
    """The paragraphs and their kinds, without greetings, closing phrases and the sender's name."""
    paragraphs = _PARAGRAPH_END.split(prose.rstrip())
    after_colon = False
    for number, text in enumerate(paragraphs):
        is_last = number == len(paragraphs) - 1
        text = _without_name(text.strip("\n"), sender, is_last)
        if greeting := _GREETING.match(text):
            text = text[greeting.end() :]
        if not text.strip() or _is_sign_off(text, is_last and number > 0) or _is_attribution(text):
            continue
        is_code = _is_code(text) or (after_colon and _is_example(text))
        after_colon = text.endswith(":") or (is_code and after_colon)
        yield text, "code" if is_code else "text"


def _joined(paragraphs: Iterator[tuple[str, BlockKind]]) -> Iterator[tuple[str, BlockKind]]:
    """The paragraphs, with one sentence around a short example as one paragraph."""
    waiting: list[tuple[str, BlockKind]] = []
    for text, kind in paragraphs:
        if (
            len(waiting) > 1
            and (kind, waiting[-2][1]) == ("text", "text")
            and text[0].islower()
            and len(waiting[-1][0]) <= _MAX_SIGN_OFF_CHARACTERS
            and not waiting[-2][0].endswith((".", "!", "?"))
            and not waiting[-1][0].endswith((".", "!", "?"))
        ):
            parts = [part for part, _ in waiting[-2:]] + [text]
            waiting[-2:] = [("\n".join(parts), "text")]
        else:
            waiting.append((text, kind))
        if len(waiting) > 2:
            yield waiting.pop(0)
    yield from waiting


def _without_name(paragraph: str, sender: frozenset[str], is_last: bool) -> str:
    """
    The paragraph without the name of the sender, alone in its last line.

    In the last paragraph, what stands below the name is left out too: it is a signature.
    """
    lines = paragraph.split("\n")
    for at in range(len(lines) if is_last and len(lines) <= _MAX_SIGNATURE_LINES else 1):
        line = lines[-1 - at]
        if len(line) < _MAX_SIGN_OFF_CHARACTERS and _NAME_LINE.fullmatch(line):
            words = [word.lower() for word in _WORD.findall(line)]
            if all(word in sender or _is_nickname(word, sender) for word in words):
                return "\n".join(lines[: len(lines) - 1 - at])
    return paragraph


def _is_nickname(word: str, sender: frozenset[str]) -> bool:
    """Whether a word is the start of a word of the sender, such as `Alex` for `Alexandre`."""
    is_long = len(word) >= _MIN_NICKNAME_CHARACTERS
    return is_long and any(name.startswith(word) for name in sender)


def _is_attribution(paragraph: str) -> bool:
    """Whether a paragraph says who wrote a quote, with an address or a date."""
    is_short = len(paragraph) < _MAX_SIGN_OFF_CHARACTERS
    if not (is_short and paragraph.endswith(":") and ("@" in paragraph or "20" in paragraph)):
        return False
    return bool(_ATTRIBUTION.match(paragraph) or _SHORT_ATTRIBUTION.match(paragraph))


def _is_sign_off(paragraph: str, is_last: bool) -> bool:
    is_short = len(paragraph) < _MAX_SIGN_OFF_CHARACTERS
    pattern = _SIGN_OFF if is_last else _SIGN_OFF_ANYWHERE
    return is_short and pattern.fullmatch(paragraph) is not None


def _is_example(paragraph: str) -> bool:
    """Whether indented lines below a colon are a command or the like: none ends as a sentence."""
    return all(
        _INDENT.match(line) and not line.rstrip().endswith(_SENTENCE_ENDS)
        for line in paragraph.split("\n")
    ) and not _ITEM.match(paragraph)


def _is_code(paragraph: str) -> bool:
    """
    Whether at least half of the lines look like those of a program.

    Also a script, the list of changes of an author, and a line that is repeated.
    """
    bare = paragraph.strip("\n")
    if bare.startswith(_SCRIPT) or _SHORTLOG.fullmatch(bare):
        return True
    lines = bare.split("\n")
    if len(lines) >= _LEAST_REPEATED_LINES and len(set(lines)) == 1:
        return True
    return 2 * sum(map(_is_code_line, lines)) >= len(lines)


def _is_code_line(line: str) -> bool:
    bare = line.rstrip()
    return (
        bare.endswith(_CODE_ENDS)
        or bare.startswith(_CODE_STARTS)
        or _COMPILER_LINE.match(bare) is not None
        or _LOG_LINE.match(bare) is not None
        or (len(bare) < _MAX_SIGN_OFF_CHARACTERS and _ASSIGNMENT.match(bare) is not None)
    )


def _drop_attribution(kept: list[str]) -> None:
    """Remove a line such as `On Monday, Jane wrote:` above a quote; it may take three lines."""
    while kept and not kept[-1].strip():
        kept.pop()
    for count in (3, 2, 1):
        lines = kept[-count:]
        if all(map(str.strip, lines)) and _ATTRIBUTION.match("\n".join(lines)):
            del kept[-count:]
            break
    if kept and _SHORT_ATTRIBUTION.match(kept[-1]):
        kept.pop()
    kept.append("")
