"""Training of the context pass: examples, the network beside the engine, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import askline
from askline import Passage
from askline.cli.train_cascade import context
from askline.data.squad import AnswerSpan, Paragraph, SpanQuestion
from askline.engine.encoder import load_encoder
from askline.engine.tokenizer import WordPiece
from askline.errors import DataError, InputError
from askline.models.cascade_config import Adapter
from askline.models.folder import ModelFolder
from askline.training.cascade.adapter_networks import (
    ContextNetwork,
    ContextOutput,
    WindowBatch,
    WindowFormat,
    widen_adapter,
)
from askline.training.cascade.context_examples import (
    ContextExamples,
    PassageQuestion,
    TrainingPassage,
    Window,
    paragraph_passages,
    read_passages,
)
from askline.training.cascade.context_training import (
    ContextRecipe,
    draw_passages,
    fit_window,
    measure_context,
    score_passages,
    train_context,
)

from ...engine.tiny_cascades import runtime_folder, tensors, tiny_config
from ...engine.tiny_contexts import MARKER, PASSAGES, context_config

TEXTS = (
    TrainingPassage(
        "austen",
        ("Jane Austen wrote Emma.", "It appeared in 1815.", "She wrote it in Chawton."),
        (
            PassageQuestion("When did Emma appear?", (1,), ((1, 15, 19),)),
            PassageQuestion("Where did she write Emma?", (2,), ((2, 16, 23),)),
            PassageQuestion("When did Emma end?"),
        ),
        "Emma",
    ),
    TrainingPassage("other", ("It is a novel.", "She saw it in 1816.")),
    TrainingPassage("third", ("Who saw it?",)),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    of = tiny_config("mean", positions=96)
    return runtime_folder(tmp_path / "start", of, tensors(of))


@pytest.fixture
def tokenizer(folder: Path) -> WordPiece:
    return WordPiece.load(folder / "tokenizer.json")


def form(tokenizer: WordPiece) -> WindowFormat:
    return WindowFormat(tokenizer.cls_id, tokenizer.sep_id, MARKER, 64, 12)


def test_examples_know_answers_spans_and_near_passages(
    tokenizer: WordPiece, tmp_path: Path
) -> None:
    examples = ContextExamples.of(TEXTS, tokenizer)
    examples.save(tmp_path / "set.npz")
    examples = ContextExamples.load(tmp_path / "set.npz")
    assert len(examples) == 3
    assert examples.answer_lists() == [(1,), (2,), ()]
    ((sentence, first, last),) = examples.span_lists()[0]
    tokens = tokenizer.tokens_with_offsets(TEXTS[0].sentences[sentence])
    assert TEXTS[0].sentences[1][tokens[first][1] : tokens[last][2]] == "1815"
    assert 0 not in examples.near[0]  # its own passage
    assert {1, 2} >= set(examples.near[0][examples.near[0] >= 0].tolist()) > set()


def test_a_passage_with_the_answer_is_no_negative(tokenizer: WordPiece) -> None:
    passages = [*TEXTS, TrainingPassage("copy", ("Emma did appear in 1815, it is said.",))]
    near = ContextExamples.of(passages, tokenizer).near
    assert 3 not in near[0]
    assert 3 in near[1]


def test_near_passages_are_drawn_from_the_nearest(tokenizer: WordPiece) -> None:
    others = [TrainingPassage(str(at), (f"Emma did appear {at} times.",)) for at in range(12)]
    examples = ContextExamples.of([*TEXTS, *others], tokenizer)
    recipe = ContextRecipe(near=2, nearest=3, random=1)
    drawn = [draw_passages(examples, 0, recipe, np.random.default_rng(at)) for at in range(20)]
    assert all(own == examples.question_passages[0] for own, *_ in drawn)
    near = {passage for _, *passages in drawn for passage in passages[:2]}
    assert near == set(examples.near[0][:3].tolist())


def test_a_span_counts_for_the_sentence_that_has_most_of_it() -> None:
    text = "Emma appeared. It was in 1815."
    spans = (AnswerSpan("in 1815", 22, 29),)
    paragraph = Paragraph("p", "Jane_Austen", text, (SpanQuestion("q", "When?", spans),))
    (passage,) = paragraph_passages([paragraph])
    assert passage.title == "Jane Austen"
    assert passage.questions == (PassageQuestion("When?", (1,), ((1, 7, 14),)),)


def test_network_and_engine_give_the_same_logits(tmp_path: Path) -> None:
    config = context_config()
    weights = tensors(config)
    path = runtime_folder(tmp_path / "float", config, weights)
    tokenizer = WordPiece.load(path / "tokenizer.json")
    network = ContextNetwork(replace(config, context=None), weights, (1, 2, 3)).eval()
    texts = [
        TrainingPassage(
            str(at), tuple(each.sentences), (PassageQuestion("Who wrote Emma?", (0,)),), each.title
        )
        for at, each in enumerate(PASSAGES[:3])
    ]
    examples = ContextExamples.of(texts, tokenizer)
    windows = [Window(at, at, 0, len(each.sentences), True) for at, each in enumerate(texts)]
    with torch.inference_mode():
        found = network.score(WindowBatch.of(examples, windows, form(tokenizer)))
    run = load_encoder(ModelFolder.open(path, kind="cascade")).begin_passages(
        [("Who wrote Emma?", PASSAGES[:3])]
    )
    for row, depth in enumerate((1, 2, 3)):
        logits = run.advance(np.arange(3), depth)
        np.testing.assert_allclose(found.scores[row].numpy(), logits, atol=2e-4)


def test_long_windows_lose_sentences_but_no_answer(tokenizer: WordPiece) -> None:
    long = TrainingPassage(
        "long",
        tuple(f"Novel {at} was her novel, it is said." for at in range(30)),
        (PassageQuestion("Which novel?", (17,)),),
    )
    examples = ContextExamples.of([long], tokenizer)
    for seed in range(5):
        random = np.random.default_rng(seed)
        window = fit_window(examples, Window(0, 0, 0, 30, False), form(tokenizer), (17,), random)
        assert window.first <= 17 < window.last
        batch = WindowBatch.of(examples, [window], form(tokenizer))
        assert len(batch.packed.tokens) <= 64
        assert batch.packed.tokens[-1] == tokenizer.sep_id


def test_a_wider_adapter_changes_nothing_yet() -> None:
    config = context_config()
    weights = tensors(config)
    wide = widen_adapter(weights, 7, seed=1)
    name = "adapter.layers.0.query"
    before, after = (
        each[f"{name}.up.weight"].T @ each[f"{name}.down.weight"] for each in (weights, wide)
    )
    assert len(wide[f"{name}.up.weight"]) == 7
    np.testing.assert_allclose(before, after, atol=1e-6)


def untrained(folder: Path) -> ContextNetwork:
    opened = ModelFolder.open(folder, kind="cascade")
    base = tiny_config("mean", positions=96)
    config = replace(base, reader=True, adapter=Adapter(0, 4))
    start = dict(opened.stored_tensors())
    start |= {
        "reader.weight": np.zeros((2, base.encoder.width), "f4"),
        "reader.bias": np.zeros(2, "f4"),
    }
    torch.manual_seed(0)
    return ContextNetwork(config, start, (1, 2, 3))


RECIPE = ContextRecipe(epochs=60, learning_rate=0.01, head_rate=0.01, batch_size=3, titles=1.0)


def test_training_learns_the_answers(folder: Path, tokenizer: WordPiece) -> None:
    network, examples = untrained(folder), ContextExamples.of(TEXTS, tokenizer)
    losses: list[float] = []
    train_context(
        network, examples, form(tokenizer), RECIPE, on_epoch=lambda each: losses.append(each.loss)
    )
    assert losses[-1] < 0.5 * losses[0]
    assert measure_context(network, examples, form(tokenizer))["P@1 3"] == 100


def test_a_teacher_that_disagrees_with_the_labels_is_followed(
    folder: Path, tokenizer: WordPiece
) -> None:
    network, examples = untrained(folder), ContextExamples.of(TEXTS, tokenizer)

    def first_sentence(batch: WindowBatch) -> ContextOutput:
        """Every window is answered by its first sentence, and by the first two words of it."""
        is_first = torch.ones(batch.sentences, dtype=torch.bool)
        is_first[1:] = batch.windows[1:] != batch.windows[:-1]
        ends = torch.zeros(len(batch.packed.tokens), 2)
        starts = torch.from_numpy(batch.starts)[is_first]
        ends[starts, 0] = ends[starts + 1, 1] = 9.0
        return ContextOutput(torch.where(is_first, 4.0, -4.0)[None], ends)

    recipe = replace(RECIPE, teacher_share=1.0, teacher_reading=1.0, small_rate=0.01)
    train_context(network, examples, form(tokenizer), recipe, teacher=first_sentence)
    found = score_passages(network, examples, form(tokenizer), [(0, 0), (1, 0), (2, 0)])
    assert [int(each[-1].argmax()) for each in found.logits] == [0, 0, 0]
    assert found.spans.tolist() == [[0, 0, 1]] * 3


def test_broken_files_of_passages_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "passages.jsonl"
    good = {"sentences": ["One.", "Two."], "questions": [{"question": "Which?", "answers": [1]}]}
    path.write_text(json.dumps(good) + "\n", encoding="utf-8")
    (passage,) = read_passages(path)
    assert passage.questions == (PassageQuestion("Which?", (1,)),)
    for bad in (
        '{"sentences": ["One."], "questions": [{"question": "Q", "answers": [1]}]}',
        "{",
        "[]",
    ):
        path.write_text(json.dumps(good) + "\n" + bad + "\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"passages\.jsonl:2: not a passage"):
            read_passages(path)
    with pytest.raises(InputError, match="passages with questions"):
        ContextExamples.of([TrainingPassage("empty", ("One.",))], None)  # type: ignore[arg-type]


def test_command_writes_a_folder_that_ranks_passages(
    tmp_path: Path, folder: Path, squad_file: Path
) -> None:
    passages = tmp_path / "passages.jsonl"
    entry = {
        "sentences": TEXTS[0].sentences,
        "questions": [{"question": "Who wrote Emma?", "answers": [0]}],
    }
    passages.write_text(json.dumps(entry) + "\n", encoding="utf-8")
    out = tmp_path / "out"
    options = [
        "--model",
        folder,
        "--on",
        f"squad1:{squad_file}",
        "--passages",
        passages,
        "--rank",
        3,
    ]
    options += [
        "--depths",
        "1,3",
        "--epochs",
        1,
        "--batch-size",
        2,
        "--seed",
        1,
        "--seed",
        2,
        "--out",
        out,
    ]
    result = CliRunner().invoke(context, [str(each) for each in options], catch_exceptions=False)
    assert result.exit_code == 0
    assert "passages.jsonl" in (out / "README.md").read_text(encoding="utf-8")
    ranker = askline.load(f"cascade({str(out)!r})")
    texts = ["Jane Austen wrote Emma.", "It is a novel."]
    before = askline.load(f"cascade({str(folder)!r})").rank("Who wrote Emma?", texts)
    assert [hit.score for hit in ranker.rank("Who wrote Emma?", texts)] == [
        hit.score for hit in before
    ]
    hits = ranker.rank("Who wrote Emma?", [Passage(texts, title="Novels")])
    assert sorted(hit.index for hit in hits) == [0, 1]
