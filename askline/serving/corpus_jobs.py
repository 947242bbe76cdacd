"""
Ask and document jobs, as a worker executes them.

A question is answered from the index, from the texts of a search server (`RemoteRetriever`), or
from documents in the request. Documents of the index are added, removed, listed and shown by id; an
id is never used as a path.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from ..corpus import (
    Answer,
    AnswerPhrase,
    AnswerPlace,
    Answers,
    Corpus,
    RetrievedSentence,
)
from ..corpus.ask import DEFAULT_BLEND, answers_from, read_phrase
from ..corpus.connectors import Connector, connect
from ..corpus.results import reaches_threshold
from ..corpus.sentence_ranking import RankedSentences, rank_sentences
from ..errors import AsklineError, CorpusError
from ..rankers.base import Ranker
from ..rankers.deadline import Deadline
from ..rankers.probability import calibrated_stages
from ..text.sentences import split_sentences
from ..types import StageReport
from .common_schemas import new_response_id
from .corpus_schemas import (
    AddedDocument,
    AddResponse,
    AnswerSchema,
    AskResponse,
    CandidateSchema,
    DocumentResponse,
    IndexTotal,
    ListedDocument,
    ListResponse,
    MissingShardSchema,
    NamedText,
    PhraseSchema,
    PlaceSchema,
    RemoveResponse,
    SentenceSchema,
    SourceSchema,
    StageSchema,
    StageScoreSchema,
)
from .messages import AddJob, AskJob, JobError, ListJob, RemoveJob, ShowJob
from .stage_recorder import StageRecorder, StageScore

__all__ = [
    "NotFoundError",
    "RemoteRetriever",
    "add",
    "ask_documents",
    "ask_index",
    "list_documents",
    "remove",
    "show",
]

_CONTEXT_SENTENCES = 6  # sentences of the paragraph shown before and after the best answer
_MAX_EXPLAINED = 200  # candidates in the response with `explain`


class NotFoundError(JobError):
    """The document or the ranker does not exist, or the service has no index."""

    status = 404


class RemoteRetriever:
    """
    A connection to a search server, opened anew after a question was cancelled in progress.

    The rest of the server's response to that question must not be read as the response to the next.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connector: Connector | None = connect(url)
        self._name, self._size = str(self._connector), len(self._connector)

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """Return at most `k` sentences of the texts that the server finds, best first."""
        connector = self._connector = self._connector or connect(self._url)
        try:
            return connector.retrieve(question, k)
        except AsklineError:
            raise
        except BaseException:
            self._connector = None
            connector.close()
            raise

    def neighbors(self, found: RetrievedSentence, count: int = 1) -> tuple[str, str]:
        """Return at most `count` sentences before and after in the same text."""
        return self._connector.neighbors(found, count) if self._connector else ("", "")

    def __len__(self) -> int:
        return self._size

    def __str__(self) -> str:
        return self._name


# --- Questions ---


def ask_documents(
    ranker: Ranker, job: AskJob, documents: Sequence[NamedText], deadline_ms: float | None
) -> AskResponse:
    """Answer from documents: rank their sentences, or whole documents without `job.split`."""
    start = time.perf_counter()
    split = [_sentences(each) if job.split else [_whole(each)] for each in documents]
    passages = [passage for own in split for passage in own]
    # Positions, because two documents may have the same id.
    documents_of = [position for position, own in enumerate(split) for _ in own]
    recorder = StageRecorder(ranker, Deadline.after(deadline_ms))
    texts = [passage.text for passage in passages]
    hits = recorder.rank(job.question, texts)
    calibrated = calibrated_stages(recorder.ranking)
    answers = [
        _answer(
            passages[hit.index],
            score=hit.score,
            probability=hit.score if hit.stage in calibrated else None,
            stage=hit.stage,
            context=_paragraph_of_passage(passages, documents_of, hit.index)
            if position == 0
            else ("", ""),
        )
        for position, hit in enumerate(hits[: job.top_k])
    ]
    stages = recorder.ranking.stages
    response = _response(job, ranker, answers, stages, start, _threshold(ranker, job))
    if job.explain:
        order = [hit.index for hit in hits]
        response.candidates = _candidates(passages, order, recorder.stage_scores())
    return response


def ask_index(
    index: Corpus | RemoteRetriever, ranker: Ranker, job: AskJob, deadline_ms: float | None
) -> AskResponse:
    """Answer from the index, or from the texts of a search server."""
    start, deadline = time.perf_counter(), Deadline.after(deadline_ms)
    if isinstance(index, RemoteRetriever):
        return _ask_index(index, ranker, job, deadline, start)
    try:
        with index.snapshot():
            return _ask_index(index, ranker, job, deadline, start)
    except CorpusError:
        index.ask(job.question, top_k=1)  # rebuilds a damaged search index
        with index.snapshot():
            return _ask_index(index, ranker, job, deadline, start)


def _ask_index(
    index: Corpus | RemoteRetriever,
    ranker: Ranker,
    job: AskJob,
    deadline: Deadline | None,
    start: float,
) -> AskResponse:
    recorder = StageRecorder(ranker, deadline)
    found, ranked = _ask_retriever(index, recorder, job)
    answers = []
    for position, each in enumerate(found.answers[: job.top_k]):
        context = _paragraph_of_answer(index, each, ranked.sentences) if position == 0 else None
        answers.append(
            _answer(
                _passage(each),
                score=each.score,
                probability=each.probability,
                stage=each.stage,
                context=context or (each.before, each.after),
                phrase=each.phrase,
                also_at=each.also_at,
            )
        )
    response = _response(job, ranker, answers, found.stages, start, found.threshold)
    if isinstance(index, Corpus):
        # The problem itself may name a path of the server, which clients must not see.
        response.missing_shards = [
            MissingShardSchema(name=each.name, problem="It is missing or damaged.")
            for each in index.missing_shards
        ]
    if job.explain:
        response.candidates = _ranked_candidates(ranked, recorder)
    return response


def _ask_retriever(
    index: Corpus | RemoteRetriever, recorder: StageRecorder, job: AskJob
) -> tuple[Answers, RankedSentences]:
    retriever = index if isinstance(index, RemoteRetriever) else index.retriever()
    retrieved = max(job.top_k, job.retrieved)
    ranked = rank_sentences(
        job.question, retriever, recorder, retrieved=retrieved, blend=DEFAULT_BLEND
    )
    found = answers_from(
        ranked, job.question, retriever, recorder, top_k=job.top_k, threshold=job.threshold
    )
    return found, ranked


# --- The response to a question ---


@dataclass(frozen=True, slots=True)
class _Passage:
    """A candidate and its place in the document."""

    text: str
    document: str
    start: int
    end: int
    unit: str
    number: int
    title: str = ""
    heading: str = ""
    headings: list[str] = field(default_factory=list)
    lead_in: str = ""
    row: int | None = None
    record: str = ""


def _response(
    job: AskJob,
    ranker: Ranker,
    answers: list[AnswerSchema],
    stages: Sequence[StageReport],
    start: float,
    threshold: float | None,
) -> AskResponse:
    first = answers[0].probability if answers else None
    for each in answers:
        each.above_threshold = reaches_threshold(each.probability, threshold, first)
    best = next((each for each in answers if each.above_threshold), None)
    if best is not None and best.phrase is None:
        passage = _Passage(best.text, **best.source.model_dump())
        phrase = read_phrase(ranker, job.question, passage)
        if phrase is not None:
            best.phrase = _phrase(phrase)
    return AskResponse(
        id=new_response_id(),
        question=job.question,
        ranker=str(ranker),
        no_answer=best is None,
        threshold=threshold,
        answers=answers,
        stages=[_stage(number, stage) for number, stage in enumerate(stages)],
        skipped=sum(stage.skipped for stage in stages),
        ms=round(1000 * (time.perf_counter() - start), 3),
        missing_shards=[],
    )


def _threshold(ranker: Ranker, job: AskJob) -> float | None:
    """The threshold of the request, or else that of the ranker; None without probabilities."""
    own = ranker.threshold
    return own if own is None or job.threshold is None else job.threshold


def _stage(number: int, stage: StageReport) -> StageSchema:
    return StageSchema(
        stage=number,
        ranker=stage.ranker,
        entered=stage.entered,
        kept=stage.kept,
        dropped=stage.entered - stage.kept,
        skipped=stage.skipped,
        calibrated=stage.calibrated,
        in_context=stage.in_context,
        ms=round(1000 * stage.seconds, 3),
    )


def _answer(
    passage: _Passage,
    *,
    score: float,
    probability: float | None,
    stage: int,
    context: tuple[str, str],
    phrase: AnswerPhrase | None = None,
    also_at: Sequence[AnswerPlace] = (),
) -> AnswerSchema:
    before, after = context
    source = {name: value for name, value in asdict(passage).items() if name != "text"}
    return AnswerSchema(
        text=passage.text,
        score=score,
        probability=probability,
        stage=stage,
        above_threshold=True,  # `_response` decides
        phrase=None if phrase is None else _phrase(phrase),
        source=SourceSchema(**source),
        before=before,
        after=after,
        also_at=[
            PlaceSchema(**asdict(place) | {"headings": list(place.headings)}) for place in also_at
        ],
    )


def _phrase(phrase: AnswerPhrase) -> PhraseSchema:
    return PhraseSchema(text=phrase.text, start=phrase.start, end=phrase.end)


def _candidates(
    passages: Sequence[_Passage], order: Sequence[int], scores: dict[int, list[StageScore]]
) -> list[CandidateSchema]:
    """Return candidates in the given order, with the score and rank that each stage gave them."""
    return [
        CandidateSchema(
            index=index,
            text=passages[index].text,
            document=passages[index].document,
            stage_scores=[
                StageScoreSchema(stage=each.stage, score=each.score, rank=each.rank)
                for each in scores.get(index, [])
            ],
        )
        for index in order[:_MAX_EXPLAINED]
    ]


def _ranked_candidates(ranked: RankedSentences, recorder: StageRecorder) -> list[CandidateSchema]:
    """Return every ranked sentence in the order of the answers. Retrieval is stage 0."""
    by_score = sorted(range(len(ranked.sentences)), key=lambda at: -ranked.sentences[at].score)
    scores = {
        index: [StageScore(0, ranked.sentences[index].score, rank)]
        for rank, index in enumerate(by_score, start=1)
    }
    for index, own in recorder.scores_alone().items():
        scores[index] += [replace(each, stage=each.stage + ranked.ranker_stage) for each in own]
    first = ranked.context_stage or ranked.ranker_stage
    is_out_of_time = ranked.context_stage and not ranked.in_context
    for at, own in ({} if is_out_of_time else recorder.stage_scores()).items():
        index = ranked.in_context[at] if ranked.in_context else at
        scores[index] += [replace(each, stage=each.stage + first) for each in own]
    order = [hit.index for hit in ranked.hits]
    return _candidates([_passage(each) for each in ranked.sentences], order, scores)


def _paragraph_of_answer(
    index: Corpus | RemoteRetriever, best: Answer, found: Sequence[RetrievedSentence]
) -> tuple[str, str] | None:
    """Return the text before and after in the same paragraph, or None if it is not known."""
    place = (best.document, best.start)
    ordinals = [each.ordinal for each in found if (each.document, each.start) == place]
    if isinstance(index, RemoteRetriever) or best.unit == "page" or not ordinals:
        return None
    first = max(0, ordinals[0] - _CONTEXT_SENTENCES)
    last = ordinals[0] + _CONTEXT_SENTENCES
    sentences = index.sentences(best.document, first, last) or []
    same = [each for each in sentences if each.number == best.number and not each.is_heading]
    before = " ".join(each.text for each in same if each.end <= best.start)
    after = " ".join(each.text for each in same if each.start >= best.end)
    return (before, after) if before or after else None


def _paragraph_of_passage(
    passages: Sequence[_Passage], documents_of: Sequence[int], index: int
) -> tuple[str, str]:
    """Return the text before and after in the same paragraph of the same document."""
    own = passages[index]
    first = max(0, index - _CONTEXT_SENTENCES)
    last = min(len(passages), index + _CONTEXT_SENTENCES + 1)
    same = [
        position
        for position in range(first, last)
        if (documents_of[position], passages[position].number) == (documents_of[index], own.number)
        and own.unit == "line"
    ]
    before = " ".join(passages[position].text for position in same if position < index)
    after = " ".join(passages[position].text for position in same if position > index)
    return before, after


def _sentences(document: NamedText) -> list[_Passage]:
    passages = []
    text = document.text
    line, counted_to = 1, 0
    for start, end in split_sentences(text):
        line += text.count("\n", counted_to, start)
        counted_to = start
        passages.append(_Passage(text[start:end], document.id, start, end, "line", line))
    return passages


def _whole(document: NamedText) -> _Passage:
    return _Passage(document.text, document.id, 0, len(document.text), "document", 1)


def _passage(found: RetrievedSentence | Answer) -> _Passage:
    return _Passage(
        text=found.text,
        document=found.document,
        start=found.start,
        end=found.end,
        unit=found.unit,
        number=found.number,
        title=found.title,
        heading=found.heading,
        headings=list(found.headings),
        lead_in=found.lead_in,
        row=found.row,
        record=found.record,
    )


# --- Documents of the index ---


def add(corpus: Corpus, job: AddJob) -> AddResponse:
    """Add documents. When it returns, they are on disk."""
    documents: list[AddedDocument] = []
    report = corpus.add_texts(
        [(document.id, document.text) for document in job.documents],
        on_file=lambda each: documents.append(
            AddedDocument.model_validate(
                {"id": each.document, "outcome": each.outcome, "sentences": each.sentences}
            )
        ),
    )
    return AddResponse(
        documents=documents,
        added=report.added,
        changed=report.changed,
        unchanged=report.unchanged,
        sentences=report.sentences,
    )


def remove(corpus: Corpus, job: RemoveJob) -> RemoveResponse:
    """Remove the document with exactly this id."""
    if not corpus.remove_document(job.id):
        raise NotFoundError(f"No document {job.id!r} in the index.")
    return RemoveResponse(id=job.id, removed=True)


def list_documents(corpus: Corpus, job: ListJob) -> ListResponse:
    """List one page of documents, ordered by id."""
    status = corpus.status()
    found = corpus.documents(after=job.after, limit=job.limit + 1)
    page = found[: job.limit]
    return ListResponse(
        documents=[
            ListedDocument(
                id=each.name,
                title=each.title,
                kind=each.kind,
                sentences=each.sentences,
                characters=each.characters,
                problem=each.problem,
            )
            for each in page
        ],
        next=page[-1].name if len(found) > len(page) else None,
        total=IndexTotal(documents=status.documents, sentences=status.sentences),
    )


def show(corpus: Corpus, job: ShowJob) -> DocumentResponse:
    """Return sentences of one document, in order, with their places in it."""
    found = corpus.sentences(job.id, job.first, job.first + job.limit - 1)
    if found is None:
        raise NotFoundError(f"No document {job.id!r} in the index.")
    sentences = [SentenceSchema(**asdict(sentence)) for sentence in found]
    return DocumentResponse(id=job.id, sentences=sentences)
