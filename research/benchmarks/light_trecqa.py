"""
Compare-Aggregate trained on TrecQA, for Table 2 of the Sequential rerankers.

    ASKLINE_DATA=DIR python -m research.benchmarks.light_trecqa pack --vectors FILE --out FOLDER
    python -m research.benchmarks.light_trecqa train --packed FOLDER --out FOLDER
    ASKLINE_DATA=DIR python -m research.benchmarks.light_trecqa measure --scores FOLDER

TRAIN-ALL, whose labels are automatic, with the recipe that was chosen for WikiQA and the word
vectors of Table 4 of Cosinet's paper; nothing is chosen on TrecQA. `pack` writes the sets as word
numbers, so that `train` needs only torch; on a CPU a seed takes half an hour. `measure` writes
research/results/light_trecqa.json.
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import pickle
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askline.evaluation import Run, make_qrels, score_run
from askline.rankers.requests import sort_by_score
from askline.training.light.encoded_questions import EncodedQuestions, Ragged, encode_questions
from askline.training.light.light_networks import parameter_count
from askline.training.light.light_training import network_scores, train_light_ranker

from . import common
from .light_rankers import CA, CA_POINT, questions, word_vectors

TRAIN, DEV, TEST = "trecqa:train-all", "trecqa-clean:dev", "trecqa-clean:test"
MEASURES = ("MAP", "MRR", "P@1")
Row = dict[str, Any]


def packed(found: EncodedQuestions) -> Row:
    """The set in few bytes: word vectors are whole numbers with one scale per row."""
    rows = found.vectors.numpy()
    scales = np.maximum(np.abs(rows).max(axis=1), 1e-12) / 127
    lengths = {name: getattr(found, name).lengths.numpy() for name in ("questions", "candidates")}
    return {
        "name": found.name,
        "vectors": np.rint(rows / scales[:, None]).astype(np.int8),
        "scales": scales.astype(np.float32),
        "words": {
            name: (getattr(found, name).values.numpy().astype(np.int32), own.astype(np.int16))
            for name, own in lengths.items()
        },
        "labels": found.labels.numpy().astype(np.int8),
        "sizes": found.sizes.astype(np.int32),
    }


def unpacked(row: Row, device: str) -> EncodedQuestions:
    """The inverse of `packed`; the config has no channels."""
    words = {
        name: (values.astype(np.int64), lengths.astype(np.int64))
        for name, (values, lengths) in row["words"].items()
    }
    sizes = row["sizes"].astype(np.int64)
    pair_lengths = np.repeat(words["questions"][1], sizes)
    return EncodedQuestions(
        name=row["name"],
        vectors=torch.as_tensor(
            row["vectors"].astype(np.float32) * row["scales"][:, None], device=device
        ),
        questions=Ragged.of(*words["questions"], device),
        candidates=Ragged.of(*words["candidates"], device),
        question_channels=_no_channels(pair_lengths, device),
        candidate_channels=_no_channels(words["candidates"][1], device),
        labels=torch.as_tensor(row["labels"].astype(np.float32), device=device),
        sizes=sizes,
    )


def _no_channels(lengths: NDArray[np.int64], device: str) -> Ragged:
    return Ragged.of(np.zeros((int(lengths.sum()), 0), np.float32), lengths, device)


def pack(options: argparse.Namespace) -> None:
    """Write the three sets."""
    vectors = word_vectors(options.vectors)
    sets = {
        name: packed(encode_questions(questions(name), vectors, CA)) for name in (TRAIN, DEV, TEST)
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "trecqa.pickle.xz"
    with lzma.open(path, "wb", preset=6) as stream:
        pickle.dump({"vectors": str(vectors), "sets": sets}, stream, protocol=5)
    print(f"Wrote {path}: {path.stat().st_size / 1e6:.1f} MB")


def seed_run(folder: Path, device: str, seed: int) -> tuple[Row, dict[str, NDArray[np.float64]]]:
    """One training; seconds, and scores on dev and test."""
    with lzma.open(folder / "trecqa.pickle.xz") as stream:
        sets = pickle.load(stream)["sets"]
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")  # affects GPUs only
    own = {name: unpacked(row, device) for name, row in sets.items()}
    trained = train_light_ranker(CA, own[TRAIN], replace(CA_POINT, seed=seed))
    scores = {
        f"{seed}|{name}": np.concatenate(list(network_scores(trained.network, own[name])))
        for name in (DEV, TEST)
    }
    row: Row = {"seconds": round(trained.seconds, 1)}
    row["parameters"] = parameter_count(trained.network)
    if device == "cuda":
        row["device"] = torch.cuda.get_device_name()
        row["MiB"] = round(torch.cuda.max_memory_allocated() / 2**20)
    print(seed, row, flush=True)
    return row, scores


def train(options: argparse.Namespace) -> None:
    """All seeds at once."""
    options.out.mkdir(parents=True, exist_ok=True)
    jobs = [(options.packed, options.device, seed) for seed in range(options.seeds)]
    with multiprocessing.get_context("spawn").Pool(options.seeds) as pool:
        found = pool.starmap(seed_run, jobs, chunksize=1)
    record = {str(seed): row for seed, (row, _) in enumerate(found)}
    (options.out / "light_trecqa.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    scores = {name: value for _, own in found for name, value in own.items()}
    np.savez_compressed(options.out / "light_trecqa.npz", allow_pickle=False, **scores)


def measure(options: argparse.Namespace) -> None:
    """Measure the scores and save the means over seeds."""
    record: Row = json.loads((options.scores / "light_trecqa.json").read_text("utf-8"))
    line: Row = {"row": "CA", "seeds": len(record)}
    line |= {name: next(iter(record.values()))[name] for name in ("parameters",)}
    line["seconds"] = round(fmean(row["seconds"] for row in record.values()), 1)
    with np.load(options.scores / "light_trecqa.npz") as stored:
        for part, name in (("dev", DEV), ("test", TEST)):
            values = [_measured(name, stored[f"{seed}|{name}"]) for seed in record]
            for each in MEASURES:
                line[f"{part} {each}"] = round(fmean(own[each] for own in values), 2)
                line[f"{part} {each} ±"] = round(stdev(own[each] for own in values), 2)
    devices = {row.get("device", "cpu") for row in record.values()}
    figures = {"device": ", ".join(sorted(devices)), "trecqa": [line], "runs": record}
    print(line)
    print(f"Saved to {common.save('light_trecqa', figures)}")


def _measured(name: str, scores: NDArray[np.float64]) -> dict[str, float]:
    own = questions(name)
    cuts = np.cumsum([len(question.candidates) for question in own])[:-1]
    hits = map(sort_by_score, np.split(scores, cuts))
    run = Run.from_hits("scores", zip(own, hits, strict=True))
    found = score_run(run, make_qrels(own), measures=MEASURES)
    return {each: 100 * float(found[each].mean()) for each in MEASURES}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("part", choices=["pack", "train", "measure"])
    parser.add_argument("--vectors", help="a file written by WordVectors.save, for `pack`")
    parser.add_argument("--packed", type=Path, help="folder that `pack` wrote, for `train`")
    parser.add_argument("--scores", type=Path, help="folder that `train` wrote, for `measure`")
    parser.add_argument("--out", type=Path, help="folder to write, for `pack` and `train`")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    options = parser.parse_args()
    {"pack": pack, "train": train, "measure": measure}[options.part](options)


if __name__ == "__main__":
    main()
