from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.errors import InputError
from askline.training.losses import Objective, teacher_loss
from askline.training.transformer.pair_network import PairNetwork
from askline.training.transformer.pair_sets import PairSet
from askline.training.transformer.sampled_lists import (
    DistillationLists,
    Negatives,
    SampledLists,
    SamplingPart,
    SamplingPlan,
    sentence_pool,
    teacher_scorer,
)
from askline.training.transformer.transformer_training import (
    TransformerPhase,
    TransformerRecipe,
    train_transformer,
)
from askline.types import Question, QuestionSet


@pytest.fixture
def asked(questions: QuestionSet) -> tuple[Question, ...]:
    return tuple(question for question in questions if question.answerable)


def _lists(asked: tuple[Question, ...], tokenizer: Any, plan: SamplingPlan) -> SampledLists:
    pool = sentence_pool(asked)
    hard = [
        [place for place, text in enumerate(pool) if text not in question.texts][:2]
        for question in asked
    ]
    mined = Negatives(np.array(hard, np.int32), np.full((len(asked), 1), -1, np.int32), "")
    return SampledLists("tiny", [SamplingPart(asked, plan)], mined, tokenizer)


@pytest.fixture
def lists(asked: tuple[Question, ...], tokenizer: Any) -> SampledLists:
    return _lists(
        asked, tokenizer, SamplingPlan(own=1, hard=1, lone=1, near=0, elsewhere=1, drawn=4)
    )


@pytest.fixture
def teachers(asked: tuple[Question, ...], transformers: Any, tmp_path: Path) -> SampledLists:
    """The same lists in other tokens: the words are numbered backwards."""
    from .conftest import WORDS

    words = ["<pad>", "[UNK]", "<s>", "</s>", *reversed(list(dict.fromkeys(WORDS)))]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    other = transformers.BertTokenizerFast.from_pretrained(
        tmp_path, cls_token="<s>", sep_token="</s>", pad_token="<pad>"
    )
    return _lists(asked, other, SamplingPlan(own=1, hard=1, lone=1, near=0, elsewhere=1, drawn=4))


def _longest(pairs: PairSet) -> np.ndarray:
    return np.array([len(row) for row in pairs.tokens], float)


def test_a_teacher_does_not_change_the_lists(lists: SampledLists, teachers: SampledLists) -> None:
    chosen = np.arange(3)
    plain = lists.draw(chosen, np.random.default_rng(4), _longest)
    taught = DistillationLists(lists, teachers, _longest).draw(
        chosen, np.random.default_rng(4), _longest
    )
    assert [row.tolist() for row in taught.tokens] == [row.tolist() for row in plain.tokens]
    assert taught.labels.tolist() == plain.labels.tolist()
    assert taught.teacher_scores is not None
    assert taught.teacher_scores.dtype == np.float32
    assert plain.teacher_scores is None


def test_the_teacher_reads_the_same_pairs_in_its_own_tokens(
    lists: SampledLists, teachers: SampledLists
) -> None:
    seen: list[PairSet] = []

    def teacher(pairs: PairSet) -> np.ndarray:
        seen.append(pairs)
        return np.arange(len(pairs.tokens), dtype=float)

    drawn = DistillationLists(lists, teachers, teacher).draw(
        np.array([2, 0]), np.random.default_rng(1), _longest
    )
    (theirs,) = seen
    assert [len(row) for row in theirs.tokens] == [len(row) for row in drawn.tokens]
    assert theirs.offsets.tolist() == drawn.offsets.tolist()
    assert theirs.tokens[0].tolist() != drawn.tokens[0].tolist()


def test_taught_scores_go_with_their_questions(lists: SampledLists, teachers: SampledLists) -> None:
    def numbered(pairs: PairSet) -> np.ndarray:
        return np.arange(len(pairs.tokens), dtype=float)

    drawn = DistillationLists(lists, teachers, numbered).draw(
        np.arange(3), np.random.default_rng(1), _longest
    )
    last = drawn.take([2])
    assert last.teacher_scores is not None
    assert last.teacher_scores.tolist() == list(range(int(drawn.offsets[2]), int(drawn.offsets[3])))


def test_other_lists_are_refused(asked: tuple[Question, ...], tokenizer: Any) -> None:
    plan = SamplingPlan(near=0)
    fewer = _lists(asked[:2], tokenizer, plan)
    with pytest.raises(InputError, match="the same lists for teacher and student, got 2 with"):
        DistillationLists(_lists(asked, tokenizer, plan), fewer, _longest)


def test_teacher_loss_equals_a_manual_computation() -> None:
    scores, taught = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([2.0, 0.0, 5.0])
    share = torch.softmax(torch.tensor([1.0, 0.0]), 0)  # the teacher's, at temperature 2
    first = float((share * (share.log() - np.log(0.5))).sum())
    found = teacher_loss(scores, taught, [2, 1], temperature=2.0)
    assert found.item() == pytest.approx(4 * first / 2)  # a list of one has nothing to learn


def test_a_learner_that_agrees_has_no_loss() -> None:
    scores = torch.tensor([3.0, -1.0, 0.5, 2.0])
    assert teacher_loss(scores, scores + 7, [3, 1], temperature=1.5).item() == pytest.approx(
        0, abs=1e-6
    )


def test_distillation_share_of_one_half() -> None:
    scores, labels = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0])
    taught = torch.tensor([0.0, 1.0])
    whole = Objective(distillation=0.5)(scores, labels, [2], taught)
    parts = Objective()(scores, labels, [2]) + teacher_loss(scores, taught, [2], temperature=2.0)
    assert whole.item() == pytest.approx(parts.item() / 2)


def test_lists_without_a_teacher_are_refused() -> None:
    with pytest.raises(InputError, match="needs lists with teacher scores"):
        Objective(distillation=0.5)(torch.zeros(2), torch.tensor([1.0, 0.0]), [2])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"distillation": 1.5}, "distillation must be from 0 to 1"),
        ({"temperature": 0.0}, "must be positive"),
    ],
    ids=["share", "temperature"],
)
def test_objective_refuses(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Objective(**wrong)


@pytest.mark.slow
def test_a_student_comes_to_agree_with_its_teacher(
    bert_folder: Path, lists: SampledLists, teachers: SampledLists
) -> None:
    """The teacher prefers the shortest; labels have no share in the loss."""

    def shortest(pairs: PairSet) -> np.ndarray:
        return -_longest(pairs)

    network = PairNetwork.start(bert_folder)
    taught = DistillationLists(lists, teachers, shortest)
    recipe = TransformerRecipe(
        objective=Objective(distillation=1.0, temperature=1.0),
        epochs=40,
        learning_rate=3e-3,
        batch_size=3,
        max_tokens=2_048,
    )
    history = train_transformer(network, [TransformerPhase(taught, recipe)])
    assert history[-1].loss < history[0].loss / 2


def test_teacher_scores_equal_the_scores_of_the_network(
    bert_folder: Path, lists: SampledLists
) -> None:
    network = PairNetwork.start(bert_folder)
    pairs = lists.draw(np.arange(3), np.random.default_rng(0), _longest)
    score = teacher_scorer(network.train())
    assert score(pairs).tolist() == score(pairs).tolist()  # nothing is dropped out
    assert score(pairs).shape == (len(pairs.tokens),)


def test_steps_that_run_out_end_a_training(bert_folder: Path, lists: SampledLists) -> None:
    drawn: list[int] = []

    class Counted(DistillationLists):
        def draw(self, chosen: Any, random: Any, score: Any) -> PairSet:
            drawn.append(len(chosen))
            return super().draw(chosen, random, score)

    counted = Counted(lists, lists, _longest)
    recipe = TransformerRecipe(epochs=3, batch_size=1, max_steps=4)
    train_transformer(PairNetwork.start(bert_folder), [TransformerPhase(counted, recipe)])
    # Three in the first epoch, one in the second, and the one that the third cannot do without.
    assert len(drawn) == 5
