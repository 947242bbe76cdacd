"""
Train the general cross-encoder: the mean of several runs from one start, on open data.

    python -m research.recipes.general --data DIR --init DIR --out DIR

None of the training sets is a test set. The result lies between the initial weights and the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import click
from safetensors.torch import load_file, save_file

from askline import data
from askline.errors import InputError
from askline.training.checkpoint import Epoch, average_weights, interpolate_weights
from askline.training.training_log import StepRecord, TrainingLog
from askline.training.transformer.cross_encoder_folder import load_tokenizer, save_network
from askline.training.transformer.pair_network import PairNetwork
from askline.training.transformer.sampled_lists import (
    CONVERSATION_PLAN,
    REFERENCE_PLAN,
    ListSource,
    Negatives,
    SampledLists,
    SamplingPart,
    SamplingPlan,
    is_conversation,
)
from askline.training.transformer.transformer_training import (
    TransformerPhase,
    TransformerRecipe,
    train_transformer,
)
from askline.types import QuestionSet

__all__ = [
    "PLANS",
    "SETS",
    "GeneralRecipe",
    "card",
    "general_lists",
    "general_parts",
    "general_run",
    "merged",
    "run_file",
]

SETS = ("squadshifts:train", "squad1:train", "squad-pairs:train")

PLANS = {"chosen": REFERENCE_PLAN, "first": SamplingPlan()}
"""Of lists about encyclopedic text. With `first`, which the first general model was trained with,
the network chose only the random sentences from elsewhere."""


def general_parts(
    root: Path | None = None, *, plan: str = "chosen"
) -> tuple[SamplingPart, SamplingPart]:
    """The questions with an answer, those of encyclopedias first, then those about talk."""
    questions = [question for name in SETS for question in _answerable(name, root)]
    talk = [question for question in questions if is_conversation(question)]
    rest = [question for question in questions if not is_conversation(question)]
    return SamplingPart(tuple(rest), PLANS[plan]), SamplingPart(tuple(talk), CONVERSATION_PLAN)


def general_lists(
    tokenizer: Any, negatives: Path, *, root: Path | None = None, plan: str = "chosen"
) -> SampledLists:
    """The lists to train on. The file `negatives` is made where it is not there yet."""
    parts = general_parts(root, plan=plan)
    questions = [question for part in parts for question in part.questions]
    return SampledLists(
        " + ".join(SETS), parts, Negatives.load_or_mine(negatives, questions), tokenizer
    )


def _answerable(name: str, root: Path | None) -> QuestionSet:
    return data.filter_questions(data.load_dataset(name, root=root), "answerable")


@dataclass(frozen=True, slots=True)
class GeneralRecipe:
    """Chosen on four dev sets, by MAP and by what padding costs: research/notes/transformers.md."""

    transfer: TransformerRecipe = field(default_factory=lambda: TransformerRecipe(keep="last"))
    seeds: tuple[int, ...] = (1, 2, 3)
    share: float = 0.7
    """How far to go from the start to the mean of the runs."""

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise InputError(f"seeds must be different and at least one, got {self.seeds}.")
        if not 0 <= self.share <= 1:
            raise InputError(f"share must be from 0 to 1, got {self.share}.")


def run_file(folder: Path, seed: int) -> Path:
    """Where the weights of a finished run are."""
    return folder / f"run-{seed}.safetensors"


def general_run(
    init: str | PathLike[str],
    lists: ListSource,
    recipe: TransformerRecipe,
    folder: Path,
    *,
    device: str = "cpu",
    depth: int | None = None,
    on_step: Callable[[StepRecord], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    One training from the start, its weights written to `run_file(folder, recipe.seed)`.

    Runs do not depend on each other, so they may be made at the same time, on several GPUs or by
    several processes on one. An interrupted run is resumed after its last complete epoch.
    """
    folder.mkdir(parents=True, exist_ok=True)
    out = run_file(folder, recipe.seed)
    checkpoint = out.with_suffix(".checkpoint.pt")
    log = TrainingLog(out.with_suffix(".jsonl"))
    network = PairNetwork.start(init, depth=depth).to(device)

    def noted(step: StepRecord) -> None:
        log.add_step(step)
        on_step(step)

    history = train_transformer(
        network,
        [TransformerPhase(lists, recipe)],
        checkpoint=checkpoint,
        on_step=noted,
        on_epoch=log.add_epoch,
        on_note=on_note,
    )
    draft = out.with_suffix(".tmp")
    save_file({name: value.cpu() for name, value in network.state_dict().items()}, draft)
    draft.replace(out)
    checkpoint.unlink()
    return history


def merged(network: PairNetwork, folder: Path, seeds: Sequence[int], share: float) -> None:
    """Give a network at the start the mean of finished runs, `share` of the way from the start."""
    start = {name: value.cpu() for name, value in network.state_dict().items()}
    mean = average_weights([load_file(run_file(folder, seed)) for seed in seeds])
    network.load_state_dict(interpolate_weights(start, mean, share))


def card(init: str, recipe: GeneralRecipe, plan: str = "chosen") -> str:
    """Markdown: what it was made of, under which licenses, and how to make it again."""
    lines = [
        "# general",
        "",
        "Scores a candidate sentence as the answer to a question: one number, higher is better,",
        "and its sigmoid is a probability. A sentence-transformers CrossEncoder folder.",
        "",
        f"- Started from: {Path(init).name}",
        f"- Trained on: {', '.join(SETS)}",
        "- Licenses of that data: SQuADShifts CC BY 4.0, SQuAD CC BY-SA 4.0",
        f"- Lists: {PLANS[plan]}; for reviews and forum posts {CONVERSATION_PLAN}",
        f"- Each run: {recipe.transfer}",
        f"- Weights: the mean of {len(recipe.seeds)} runs (seeds {_listed(recipe.seeds)}), "
        f"{recipe.share} of the way from the start",
        "- No question of WikiQA, TrecQA, SelQA or SQuAD dev was trained on.",
        "",
        "```",
        f"python -m research.recipes --data DATA --init {Path(init).name} "
        f"--plan {plan} --share {recipe.share:g} --out DIR",
        "```",
        "",
    ]
    return "\n".join(lines)


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.option("--data", "root", type=_FOLDER, required=True, help="The folder with the datasets.")
@click.option("--init", required=True, help="A Hugging Face folder or hub name to start from.")
@click.option("--out", type=_FOLDER, required=True, help="The model folder to write.")
@click.option("--work", type=_FOLDER, help="Where runs and negatives are kept.  [OUT.runs]")
@click.option("--device", default="cpu", show_default=True, help="What to train on.")
@click.option("--seed", "seeds", type=int, multiple=True, help="One run each.  [1, 2 and 3]")
@click.option("--epochs", type=click.IntRange(min=1), help="Of each run.  [2]")
@click.option("--share", type=click.FloatRange(0, 1), help="How far to leave the start.  [0.7]")
@click.option(
    "--plan",
    type=click.Choice([*PLANS]),
    default="chosen",
    show_default=True,
    help="Of the lists: `first` with a share of 0.8 is the first general model.",
)
@click.option("--tokens", type=click.IntRange(min=512), help="Held at once.  [16384]")
def main(
    root: Path,
    init: str,
    out: Path,
    work: Path | None,
    device: str,
    seeds: Sequence[int],
    epochs: int | None,
    share: float | None,
    plan: str,
    tokens: int | None,
) -> None:
    """
    Train the general model: three runs on openly licensed sets, their mean, blended with the start.

    Finished runs are kept in the folder WORK, so the same command resumes after a kill; runs may
    also be made apart, each by its own `--seed`, before the command is given with all of them.
    """
    recipe = _recipe(seeds, epochs, share, tokens)
    work = work or out.with_name(f"{out.name}.runs")
    tokenizer = load_tokenizer(init)
    lists: SampledLists | None = None
    for seed in recipe.seeds:
        if run_file(work, seed).exists():
            continue
        lists = lists or general_lists(tokenizer, work / "negatives.npz", root=root, plan=plan)
        history = general_run(
            init,
            lists,
            replace(recipe.transfer, seed=seed),
            work,
            device=device,
            on_step=partial(_say_step, seed),
            on_note=_say,
        )
        _say(f"Run {seed}: loss {history[-1].loss:.4f}, {sum(e.seconds for e in history):.0f} s")
    network = PairNetwork.start(init)
    merged(network, work, recipe.seeds, recipe.share)
    save_network(network, tokenizer, out)
    (out / "README.md").write_text(card(init, recipe, plan), encoding="utf-8")
    _say(f"Wrote {out}")


def _recipe(
    seeds: Sequence[int], epochs: int | None, share: float | None, tokens: int | None
) -> GeneralRecipe:
    usual = GeneralRecipe()
    transfer = replace(
        usual.transfer,
        epochs=epochs or usual.transfer.epochs,
        max_tokens=tokens or usual.transfer.max_tokens,
    )
    return GeneralRecipe(
        transfer, tuple(seeds) or usual.seeds, usual.share if share is None else share
    )


def _say(text: str) -> None:
    click.echo(text, err=True)


def _say_step(seed: int, step: StepRecord) -> None:
    _say(f"Run {seed}: {step}")


if __name__ == "__main__":
    main(prog_name="python -m research.recipes")
