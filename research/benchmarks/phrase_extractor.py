"""
Table 1 of EfficientQA: is the answer among 100 candidate phrases?

    ASKLINE_DATA=DIR python -m research.benchmarks.phrase_extractor --init DIR --name NAME

Trains both end architectures on SQuADShifts and SQuAD train contexts (every eighth article of
new_wiki, the last hundred contexts and the last fifty of the other two are dev), and measures both
decodings on dev and on SQuAD v1.1 dev, a test set. Adds rows, under NAME and the architecture, to
research/results/phrase_extractor.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from askline.data.squad import Paragraph, read_paragraphs
from askline.phrases.phrase_encoder import Decoding
from askline.phrases.tokenization import load_tokenizer
from askline.training.loop import TrainingProgress
from askline.training.phrases.phrase_networks import SpanEnds
from askline.training.phrases.phrase_training import PhraseRecipe
from askline.training.phrases.phrase_workflow import PhraseRun, build_extractor, candidate_recall

from .common import data_root, load_or_empty, save

Row = dict[str, dict[str, float]]


def main() -> None:
    """Train, measure, print, save."""
    given = _arguments()
    train, dev = split(data_root())
    test = read_paragraphs(data_root() / "squad/dev-v1.1.json").paragraphs
    means = PhraseRun(
        load_tokenizer(given.init), given.device, progress=TrainingProgress(on_note=print)
    )
    recipe = PhraseRecipe(epochs=given.epochs, learning_rate=given.rate, seed=given.seed)
    rows = _known()
    for ends in get_args(SpanEnds):
        network, _ = build_extractor(given.init, train, recipe, means, ends=ends)
        row: Row = {}
        for name, paragraphs in (("dev", dev), ("SQuAD v1.1 dev", test)):
            material = means.windows(paragraphs)
            for how in get_args(Decoding):
                found = network.extract([one.window for one in material], how=how)
                row[f"{name}, {how}"] = candidate_recall(material, found, paragraphs).percent
        rows[f"{given.name} {ends}"] = {"measured": row, "how": vars(given)}
        print(given.name, ends, row)
    print(save("phrase_extractor", {"rows": rows}, "torch", "transformers"))


def split(root: Path) -> tuple[list[Paragraph], list[Paragraph]]:
    """Training paragraphs and held-out paragraphs."""

    def read(name: str) -> list[Paragraph]:
        return list(read_paragraphs(root / name).paragraphs)

    wiki = read("squadshifts/new_wiki_v1.0.json")
    held = set(sorted({paragraph.article for paragraph in wiki})[::8])
    squad = read("squad/train-800-contexts.json")
    others = [read(f"squadshifts/{name}_v1.0.json")[:-50] for name in ("reddit", "amazon_reviews")]
    train = [paragraph for paragraph in wiki if paragraph.article not in held]
    dev = [paragraph for paragraph in wiki if paragraph.article in held]
    return [*train, *squad[:-100], *others[0], *others[1]], [*dev, *squad[-100:]]


def _known() -> dict[str, object]:
    rows: dict[str, object] = load_or_empty("phrase_extractor").get("rows", {})
    return rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--init", required=True)
    parser.add_argument("--name", default="encoder")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


if __name__ == "__main__":
    main()
