"""What people use instead of askline, each as a function from a question and texts to scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import copy
from tempfile import mkdtemp
from typing import Any

import numpy as np

__all__ = [
    "bm25s_scores",
    "cross_encoder",
    "flashrank_scores",
    "onnx_pass",
    "quantised",
    "rerankers_scores",
]

Scores = Callable[[str, Sequence[str]], Any]
_LONGEST = 512  # tokens of a pair: what these encoders were trained with


def bm25s_scores(question: str, candidates: Sequence[str]) -> Any:
    """bm25s over the list as its corpus, as it is when candidates come with the question."""
    import bm25s

    quiet = {"show_progress": False}
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(candidates), stopwords=None, **quiet), **quiet)
    asked = bm25s.tokenize([question], stopwords=None, return_ids=False, **quiet)[0]
    return index.get_scores(asked)


def cross_encoder(folder: Path, backend: str, threads: int) -> Scores:
    """sentence-transformers' CrossEncoder, batches of 32 as it comes."""
    import torch
    from sentence_transformers import CrossEncoder

    torch.set_num_threads(threads)
    exact = {"torch_dtype": "float32"} if backend == "torch" else {}  # as people run it on a CPU
    model: Any = CrossEncoder(
        str(folder), device="cpu", backend=backend, max_length=_LONGEST, model_kwargs=exact
    )

    def scores(question: str, candidates: Sequence[str]) -> Any:
        pairs = [(question, candidate) for candidate in candidates]
        return model.predict(pairs, show_progress_bar=False)

    return scores


def rerankers_scores(folder: Path, threads: int) -> Scores:
    """The package rerankers, batches of 16 as it comes."""
    import torch

    torch.set_num_threads(threads)
    model: Any = import_module("rerankers").Reranker(
        str(folder), model_type="cross-encoder", device="cpu", dtype="float32", verbose=0
    )

    def scores(question: str, candidates: Sequence[str]) -> Any:
        found = model.rank(question, list(candidates), doc_ids=list(range(len(candidates))))
        own = {each.document.doc_id: each.score for each in found.results}
        return [own[place] for place in range(len(candidates))]

    return scores


def flashrank_scores(path: Path, folder: Path) -> Scores:
    """FlashRank with these weights in the place of those it downloads; all cores, as it comes."""
    package = import_module("flashrank")
    files = import_module("flashrank.Config").model_file_map
    name = "ms-marco-MiniLM-L-12-v2"  # of the shape of our encoder
    home = Path(mkdtemp()) / name
    home.mkdir()
    copy(path, home / files[name])
    for file in ("config", "tokenizer", "tokenizer_config", "special_tokens_map"):
        copy(folder / f"{file}.json", home)
    ranker = package.Ranker(
        name, cache_dir=str(home.parent), max_length=_LONGEST, log_level="ERROR"
    )

    def scores(question: str, candidates: Sequence[str]) -> Any:
        passages = [{"id": place, "text": text} for place, text in enumerate(candidates)]
        found = ranker.rerank(package.RerankRequest(query=question, passages=passages))
        own = {each["id"]: each["score"] for each in found}
        return [own[place] for place in range(len(candidates))]

    return scores


def onnx_pass(path: Path, threads: int) -> Scores:
    """FlashRank's way: ONNX Runtime, int8, all pairs padded to the longest, in one pass."""
    import onnxruntime
    from tokenizers import Tokenizer

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), settings, ["CPUExecutionProvider"])
    tokeniser = Tokenizer.from_file(str(path.parent / "tokenizer.json"))
    tokeniser.enable_truncation(_LONGEST)
    tokeniser.enable_padding()
    wanted = [value.name for value in session.get_inputs()]

    def scores(question: str, candidates: Sequence[str]) -> Any:
        coded = tokeniser.encode_batch([(question, candidate) for candidate in candidates])
        columns = {
            "input_ids": [own.ids for own in coded],
            "attention_mask": [own.attention_mask for own in coded],
            "token_type_ids": [own.type_ids for own in coded],
        }
        given = {name: np.array(columns[name], np.int64) for name in wanted}
        return session.run(None, given)[0].reshape(len(candidates), -1)[:, -1]

    return scores


def quantised(path: Path) -> tuple[Path, str]:
    """The graph with int8 weights, as FlashRank ships it; float32 where that cannot be made."""
    if "int8" in path.name:
        return path, "int8"
    if find_spec("onnx") is None:
        return path, "float32"
    from onnxruntime.quantization import quantize_dynamic

    folder = Path(mkdtemp())
    target = folder / "model.int8.onnx"
    quantize_dynamic(path, target)
    copy(path.parent / "tokenizer.json", folder)
    return target, "int8"
