from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from askline.engine.sequences import Windows
from askline.engine.tokenizer import WordPiece
from askline.models.cascade_config import ContextConfig
from askline.types import Passage

from .tiny_cascades import QUESTION, runtime_folder, tensors, tiny_config
from .tiny_contexts import MARKER, PASSAGES

CONFIG = ContextConfig((1, 3), marker=MARKER, max_length=64, max_title=12)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> WordPiece:
    of = tiny_config()
    folder = runtime_folder(tmp_path_factory.mktemp("tiny"), of, tensors(of))
    return WordPiece.load(folder / "tokenizer.json")


def _windows(tokenizer: WordPiece, *passages: Passage, question: str = QUESTION) -> Windows:
    return Windows.for_requests(tokenizer, CONFIG, [(question, passages)])


def test_a_window_is_question_title_and_marked_sentences(tokenizer: WordPiece) -> None:
    windows = _windows(tokenizer, Passage(["She wrote it.", "", "The end."], "Emma"))
    cls, sep, ids = tokenizer.cls_id, tokenizer.sep_id, tokenizer.token_ids
    question, title = ids(QUESTION), ids("Emma")
    one, three = ids("She wrote it."), ids("The end.")
    wanted = [cls, *question, sep, *title, MARKER, *one, MARKER, MARKER, *three, sep]
    assert windows.token_ids[0].tolist() == wanted
    token_ids, token_types = windows.batch(np.array([0]))
    assert token_ids.tolist() == [wanted]
    assert token_types.tolist() == [
        [0] * (len(question) + 2) + [1] * (len(wanted) - 2 - len(question))
    ]
    begin = len(question) + 2 + len(title)
    assert [(piece.sentence, piece.begin, piece.end) for piece in windows.pieces[0]] == [
        (0, begin, begin + 1 + len(one)),
        (1, begin + 1 + len(one), begin + 2 + len(one)),
        (2, begin + 2 + len(one), len(wanted) - 1),
    ]


def test_sentences_are_numbered_over_all_passages_and_questions(tokenizer: WordPiece) -> None:
    requests = [(QUESTION, PASSAGES[:2]), ("Who?", PASSAGES[2:4])]
    windows = Windows.for_requests(tokenizer, CONFIG, requests)
    seen = sorted({piece.sentence for pieces in windows.pieces for piece in pieces})
    assert seen == list(range(sum(len(passage.sentences) for passage in PASSAGES[:4])))
    assert sorted(set(windows.passage.tolist())) == [0, 1, 2, 3]


def test_a_long_passage_becomes_windows_that_share_a_sentence(tokenizer: WordPiece) -> None:
    windows = _windows(tokenizer, PASSAGES[4])
    held = [[piece.sentence for piece in pieces] for pieces in windows.pieces]
    assert len(held) > 2
    for before, after in pairwise(held):
        assert before[-1] == after[0]
    assert sorted({number for own in held for number in own}) == list(range(12))
    sizes = windows.lengths
    assert sizes.max() <= CONFIG.max_length
    assert sizes.max() - sizes.min() < 20, "the windows are of similar length"


def test_a_long_sentence_becomes_overlapping_pieces(tokenizer: WordPiece) -> None:
    passage = PASSAGES[3]
    windows = _windows(tokenizer, passage)
    ids = tokenizer.token_ids(passage.sentences[0])
    covered = np.zeros(len(ids), int)
    for token_ids, pieces in zip(windows.token_ids, windows.pieces, strict=True):
        for piece in pieces:
            if piece.sentence == 0:
                assert len(pieces) == 1
                own = token_ids[piece.begin + 1 : piece.end].tolist()
                assert own == ids[piece.start : piece.start + len(own)]
                covered[piece.start : piece.start + len(own)] += 1
    assert covered.min() == 1
    assert covered.max() == 2
    assert windows.pieces[-1][-1].sentence == 1


def test_questions_and_titles_are_cut(tokenizer: WordPiece) -> None:
    long = "she wrote novel " * 100
    windows = _windows(tokenizer, Passage(["The end."], long), question=long)
    (second,) = windows.second.tolist()
    assert second == 2 + (64 - 3) // 2
    (piece,) = windows.pieces[0]
    assert piece.begin - second == (64 - second - 1) // 3
    windows = _windows(tokenizer, Passage(["The end."], long), question="Who?")
    assert windows.pieces[0][0].begin - windows.second[0] == CONFIG.max_title


@pytest.mark.parametrize("seed", range(20))
def test_every_token_of_every_sentence_is_in_a_window(tokenizer: WordPiece, seed: int) -> None:
    random = np.random.default_rng(seed)
    sentences = [
        " ".join(random.choice(["she", "wrote", "novel", "x1"], int(random.geometric(0.08))))
        for _ in range(int(random.integers(1, 30)))
    ]
    windows = _windows(tokenizer, Passage(sentences, "Emma"))
    assert windows.lengths.max() <= CONFIG.max_length
    seen: list[set[int]] = [set() for _ in sentences]
    for token_ids, pieces in zip(windows.token_ids, windows.pieces, strict=True):
        assert token_ids[-1] == tokenizer.sep_id
        for piece in pieces:
            assert token_ids[piece.begin] == MARKER
            seen[piece.sentence] |= set(
                range(piece.start, piece.start + piece.end - piece.begin - 1)
            )
        ends = [piece.end for piece in pieces]
        assert [piece.begin for piece in pieces[1:]] == ends[:-1]
        assert ends[-1] == len(token_ids) - 1
    for sentence, tokens in zip(sentences, seen, strict=True):
        assert tokens == set(range(len(tokenizer.token_ids(sentence))))
