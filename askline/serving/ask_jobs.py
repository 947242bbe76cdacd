"""
A server that holds the texts, for a worker: asked through its connector, never written to.

A question asked of the index, or of documents that came with it, for a worker.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

from ..corpus import Answer, Corpus, HasNeighbors, RetrievedSentence, Retriever, answer
from ..corpus.ask import in_document_order, read_phrase
from ..corpus.connectors import Connector, connect
from ..errors import AsklineError, CorpusError, InputError
from ..rankers.deadline import Deadline
from ..rankers.pipeline import answer_threshold
from ..text.sentences import split_sentences
from ..types import Ranker, StageReport
from .messages import Frame
from .relevance import chance_stages
from .stage_recorder import StageRecorder, StageScore

__all__ = [
    "Remote",
    "ask_documents",
    "ask_index",
    "stage_records",
]


class Remote:
    """
    A retriever that connects anew after a question was called off half way.

    What the server would still have sent for it must not meet the next question.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._link: Connector | None = connect(url)
        self._name, self._size = str(self._link), len(self._link)

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences out of the texts that the server finds, best first."""
        link = self._link = self._link or connect(self._url)
        try:
            return link.retrieve(question, k)
        except AsklineError:
            raise
        except BaseException:
            self._link = None
            link.close()
            raise

    def neighbors(self, found: RetrievedSentence) -> tuple[str, str]:
        """The sentence before and the sentence after in the same text."""
        return self._link.neighbors(found) if self._link else ("", "")

    def __len__(self) -> int:
        return self._size

    def __str__(self) -> str:
        return self._name


_AROUND = 6  # sentences of a paragraph shown on either side of the answer
_SHOWN = 200  # candidates that `explain` goes through


@dataclass(frozen=True, slots=True)
class _Line:
    """A candidate and where it stands."""

    text: str
    document: str
    start: int
    end: int
    unit: str
    number: int
    title: str = ""
    heading: str = ""
    row: int | None = None
    record: str = ""


def ask_documents(ranker: Ranker, job: Frame) -> Frame:
    """The best sentences of the documents, or the best documents where they are not to be split."""
    start = time.perf_counter()
    _check(job["question"])
    lines = [
        line
        for name, text in job["documents"]
        for line in (_sentences(name, text) if job["split"] else [_whole(name, text)])
    ]
    recorder = StageRecorder(ranker, Deadline.after(job["deadline_ms"]))
    hits = recorder.trace_until(job["question"], [line.text for line in lines], None, None).hits
    sure = chance_stages(recorder.ranking)
    answers = []
    for at, hit in enumerate(hits[: job["top"]]):
        around = _near(lines, hit.index) if at == 0 else ("", "")
        record = _record(lines[hit.index], hit.score, hit.stage, around)
        record["probability"] = hit.score if hit.stage in sure else None
        answers.append(record)
    result = _result(job, ranker, answers, recorder.ranking.stages, start)
    if job["explain"]:
        places = [hit.index for hit in hits]
        result["candidates"] = _candidates(lines, places, recorder.stage_scores(), shift=0)
    return result


def ask_index(index: Corpus | Remote, ranker: Ranker, job: Frame) -> Frame:
    """The best sentences of a corpus, or of the texts that a server holds."""
    start = time.perf_counter()
    _check(job["question"])
    recorder = StageRecorder(ranker, Deadline.after(job["deadline_ms"]))
    retrieved = max(job["top"], job["retrieved"])
    top = retrieved if job["explain"] else job["top"]
    ask = partial(answer, job["question"], top_k=top, retrieved=retrieved)
    try:
        heard = _Heard(_retriever(index), job["top"])
        found = ask(heard, recorder)
    except CorpusError:
        if isinstance(index, Remote):
            raise
        index.ask(job["question"], top_k=1)  # which builds a damaged search index anew
        heard = _Heard(_retriever(index), job["top"])
        found = ask(heard, recorder)
    answers = []
    for at, each in enumerate(found.answers[: job["top"]]):
        around = _paragraph(index, each, heard) if at == 0 else None
        record = _record(_line(each), each.score, each.stage, around or (each.before, each.after))
        record["probability"] = each.probability
        answers.append(record)
    result = _result(job, ranker, answers, found.stages, start)
    if job["explain"]:
        result["candidates"] = _explained(heard, recorder, found.answers)
    return result


def _retriever(index: Corpus | Remote) -> Retriever:
    return index if isinstance(index, Remote) else index.retriever()


class _Heard:
    """A retriever that remembers what it found, and looks around the first few alone."""

    def __init__(self, retriever: Retriever, shown: int) -> None:
        self._retriever = retriever
        self._shown = shown
        self.found: list[RetrievedSentence] = []

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        self.found = self._retriever.retrieve(question, k)
        return self.found

    @property
    def in_order(self) -> list[RetrievedSentence]:
        """As the ranker got them."""
        return in_document_order(self.found)

    def neighbors(self, found: RetrievedSentence) -> tuple[str, str]:
        self._shown -= 1
        if self._shown < 0 or not isinstance(self._retriever, HasNeighbors):
            return "", ""
        return self._retriever.neighbors(found)

    def __len__(self) -> int:
        return len(self._retriever)

    def __str__(self) -> str:
        return str(self._retriever)


def stage_records(stages: Sequence[StageReport]) -> list[Frame]:
    """The funnel as JSON; what a stage kept is what the next one sees."""
    return [
        {
            "stage": number,
            "ranker": stage.ranker,
            "entered": stage.entered,
            "kept": stage.kept,
            "dropped": stage.entered - stage.kept,
            "skipped": stage.skipped,
            "calibrated": stage.calibrated,
            "ms": round(1000 * stage.seconds, 3),
        }
        for number, stage in enumerate(stages)
    ]


def _result(
    job: Frame, ranker: Ranker, answers: list[Frame], stages: Sequence[StageReport], start: float
) -> Frame:
    threshold = answer_threshold(ranker)
    best = answers[0]["probability"] if answers else None
    doubtful = threshold is not None and best is not None and best < threshold
    no_answer = not answers or doubtful
    if not no_answer:
        best = _Line(answers[0]["text"], **answers[0]["source"])
        phrase = read_phrase(ranker, job["question"], best)
        answers[0]["phrase"] = None if phrase is None else asdict(phrase)
    return {
        "question": job["question"],
        "ranker": str(ranker),
        "no_answer": no_answer,
        "threshold": threshold,
        "answers": answers,
        "funnel": stage_records(stages),
        "skipped": sum(stage.skipped for stage in stages),
        "ms": round(1000 * (time.perf_counter() - start), 3),
    }


def _record(line: _Line, score: float, stage: int, around: tuple[str, str]) -> Frame:
    before, after = around
    source = {key: value for key, value in asdict(line).items() if key != "text"}
    return {
        "text": line.text,
        "score": score,
        "probability": None,
        "stage": stage,
        "phrase": None,
        "source": source,
        "before": before,
        "after": after,
    }


def _candidates(
    lines: Sequence[_Line],
    places: Sequence[int],
    scores: dict[int, list[StageScore]],
    *,
    shift: int,
) -> list[Frame]:
    """Candidates best first, with the score and rank that each stage gave them."""
    return [
        {
            "index": place,
            "text": lines[place].text,
            "document": lines[place].document,
            "stage_scores": [
                {"stage": each.stage + shift, "score": each.score, "rank": each.rank}
                for each in scores.get(place, [])
            ],
        }
        for place in places[:_SHOWN]
    ]


def _explained(heard: _Heard, recorder: StageRecorder, answers: Sequence[Answer]) -> list[Frame]:
    """Every sentence found, in the order of the answers."""
    found = heard.in_order
    place = {(each.document, each.start): at for at, each in enumerate(found)}
    places = [place[each.document, each.start] for each in answers]
    records = _candidates([_line(each) for each in found], places, recorder.stage_scores(), shift=1)
    rank = {id(each): at for at, each in enumerate(heard.found, start=1)}
    for record in records:
        each = found[record["index"]]
        first = {"stage": 0, "score": each.score, "rank": rank[id(each)]}
        record["stage_scores"].insert(0, first)
    return records


def _paragraph(index: Corpus | Remote, best: Answer, heard: _Heard) -> tuple[str, str] | None:
    """What stands before and after in the same paragraph; None where that cannot be told."""
    place = (best.document, best.start)
    at = [each.ordinal for each in heard.found if (each.document, each.start) == place]
    if isinstance(index, Remote) or best.unit == "page" or not at:
        return None
    around = index.sentences(best.document, max(0, at[0] - _AROUND), at[0] + _AROUND) or []
    same = [each for each in around if each.number == best.number and not each.is_heading]
    before = " ".join(each.text for each in same if each.end <= best.start)
    after = " ".join(each.text for each in same if each.start >= best.end)
    return (before, after) if before or after else None


def _near(lines: Sequence[_Line], place: int) -> tuple[str, str]:
    """The neighbors within the same paragraph of the same document."""
    own = lines[place]
    window = range(max(0, place - _AROUND), min(len(lines), place + _AROUND + 1))
    same = [
        at
        for at in window
        if (lines[at].document, lines[at].number) == (own.document, own.number)
        and own.unit == "line"
    ]
    before = " ".join(lines[at].text for at in same if at < place)
    return before, " ".join(lines[at].text for at in same if at > place)


def _sentences(name: str, text: str) -> list[_Line]:
    lines = []
    number, counted = 1, 0
    for start, end in split_sentences(text):
        number += text.count("\n", counted, start)
        counted = start
        lines.append(_Line(text[start:end], name, start, end, "line", number))
    return lines


def _whole(name: str, text: str) -> _Line:
    return _Line(text, name, 0, len(text), "document", 1)


def _line(found: RetrievedSentence | Answer) -> _Line:
    place = (found.start, found.end, found.unit, found.number)
    rows = (found.row, found.record)
    return _Line(found.text, found.document, *place, found.title, found.heading, *rows)


def _check(question: str) -> None:
    if not question.strip():
        raise InputError("The question must be a text with words in it, got none.")
