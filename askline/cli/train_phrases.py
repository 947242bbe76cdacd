"""`askline train extractor` and `askline train phrases`: phrase-indexed question answering."""

from __future__ import annotations

import json
import random
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import InputError, ModelError
from .options import data_option, device_option, out_option, require_torch, seed_option
from .progress import step_logger

if TYPE_CHECKING:
    from ..data.squad import Paragraph
    from ..training.phrases.phrase_run import Means
    from ..training.phrases.phrase_teacher import PairText

__all__ = ["extractor", "phrases"]

_Function = TypeVar("_Function", bound=Callable[..., object])


def _common(function: _Function) -> _Function:
    options = [
        click.option(
            "--on",
            "files",
            multiple=True,
            required=True,
            type=click.Path(path_type=Path),
            help="A file in SQuAD's format, here or under --data; may be given again.",
        ),
        click.option(
            "--dev", type=click.Path(path_type=Path), help="A file in SQuAD's format to measure on."
        ),
        click.option(
            "--language",
            type=click.Choice(["en", "fr"]),
            default="en",
            show_default=True,
            help="Whose articles do not count when phrases are compared.",
        ),
        click.option(
            "--epochs",
            type=click.IntRange(min=1),
            default=6,
            show_default=True,
            help="How often every paragraph is seen.",
        ),
        click.option(
            "--rate",
            type=float,
            default=1e-4,
            show_default=True,
            help="The peak of the learning rate.",
        ),
        click.option(
            "--window",
            type=click.IntRange(min=128),
            default=384,
            show_default=True,
            help="Tokens that the encoder sees at a time.",
        ),
        click.option(
            "--batch",
            type=click.IntRange(min=1),
            default=32,
            show_default=True,
            help="Paragraphs a step.",
        ),
        out_option,
        data_option,
        seed_option,
        device_option,
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.command()
@click.option("--init", required=True, help="A Hugging Face folder or hub name to start from.")
@click.option(
    "--ends",
    type=click.Choice(["conditional", "classic"]),
    default="conditional",
    show_default=True,
    help="Ends scored beside their start, or alone.",
)
@_common
def extractor(init: str, *, ends: Any, out: Path, **options: Any) -> None:
    """
    Train an extractor: the phrases of a text that could answer something.

    \b
    askline train extractor --init DIR --on squadshifts/new_wiki_v1.0.json --out DIR
    """
    require_torch(options["device"])
    from ..training.phrases.phrase_export import save_extractor
    from ..training.phrases.phrase_run import fit_extractor

    means, text = _means(init, options)
    train, dev = _paragraphs(options)
    network, measured = fit_extractor(init, train, _recipe(options), means, ends=ends, dev=dev)
    card = _card("extractor", init, options, measured)
    save_extractor(network.cpu(), text, out, card=card)
    _say(measured, out)


@click.command()
@click.option(
    "--extractor",
    "extractor_folder",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder that `askline train extractor` wrote.",
)
@click.option("--init", help="Start from this encoder instead of the extractor's.")
@click.option(
    "--form",
    type=click.Choice(["markers", "span"]),
    default="span",
    show_default=True,
    help="A phrase as two marks beside its text, or as the tokens at its ends.",
)
@click.option("--lexical/--no-lexical", default=True, help="Weights for the words around a phrase.")
@click.option("--teacher", help="An encoder to train two readers from, which then teach.")
@click.option(
    "--pairs",
    type=click.Path(path_type=Path),
    help="JSON lines with 'question' and 'sentence', whose answers the readers mark.",
)
@click.option(
    "--precision",
    type=click.Choice(["int8", "float32"]),
    default="int8",
    show_default=True,
    help="Of the weights that are written.",
)
@click.option(
    "--word-bits",
    type=click.Choice(["8", "4"]),
    default="8",
    show_default=True,
    help="Of a word's embedding in int8; 4 are rounded before training and left so.",
)
@_common
def phrases(extractor_folder: Path, *, out: Path, **options: Any) -> None:
    """
    Train the phrase model: vectors of phrases and questions that are near when one answers other.

    \b
    askline train phrases --extractor DIR --teacher DIR --on squadshifts/new_wiki_v1.0.json \\
        --out DIR
    """
    require_torch(options["device"])
    from ..training.phrases.phrase_export import export_phrases, load_extractor, runtime_shape
    from ..training.phrases.phrase_run import Plan, fit_phrases

    pairs = _pairs(options)
    means, text = _means(extractor_folder, options)
    train, dev = _paragraphs(options)
    recipe, teacher = _recipe(options), options["teacher"]
    bits: Any = int(options["word_bits"])
    plan = Plan(
        options["form"],
        options["lexical"],
        options["init"],
        teacher=(teacher, recipe) if teacher else None,
        pairs=pairs,
        word_bits=bits,
    )
    found = load_extractor(extractor_folder).to(means.device)
    encoder = _other_encoder(options["init"], text) if options["init"] else found.encoder
    runtime_shape(encoder)  # what cannot be written is refused before it is trained
    network, measured = fit_phrases(found, train, recipe, means, plan=plan, dev=dev)
    card = _card("phrases", options["init"] or extractor_folder.name, options, measured)
    texts = _some(train) if options["precision"] == "int8" else []
    export_phrases(network.cpu(), text, out, card=card, texts=texts, bits=bits)
    _say(measured, out)


def _means(init: str | Path, options: dict[str, Any]) -> tuple[Means, str]:
    """What training needs, and the tokeniser as the text of its file."""
    from ..phrases.tokenization import load_tokenizer
    from ..training.phrases.phrase_run import Means

    if Path(init).is_dir():
        tokeniser = load_tokenizer(init)
    else:
        from ..training.transformer.cross_encoder_folder import load_tokeniser as from_hub

        tokeniser = from_hub(init).backend_tokenizer
        tokeniser.no_truncation()
        tokeniser.no_padding()
    means = Means(
        tokeniser,
        options["device"],
        options["language"],
        options["window"],
        note=lambda note: click.echo(note, err=True),
        step=step_logger(),
    )
    return means, tokeniser.to_str()


def _other_encoder(init: str, tokeniser: str) -> Any:
    """One to start from in place of the extractor's; it must know the same words."""
    from ..training.transformer.pair_network import read_encoder

    own = Path(init) / "tokenizer.json"
    texts = [tokeniser, own.read_text("utf-8")] if own.is_file() else [tokeniser]
    known, *other = [json.loads(text)["model"]["vocab"] for text in texts]
    if other and known != other[0]:
        raise ModelError(f"{init} must have the words of the extractor's tokeniser, got others.")
    return read_encoder(init, plain=False)[0]


def _recipe(options: dict[str, Any]) -> Any:
    from ..training.phrases.phrase_training import PhraseRecipe

    return PhraseRecipe(options["epochs"], options["rate"], options["batch"], seed=options["seed"])


def _paragraphs(options: dict[str, Any]) -> tuple[list[Paragraph], list[Paragraph]]:
    from ..data.squad import read_paragraphs

    def read(file: Path) -> list[Paragraph]:
        return list(read_paragraphs(_found(file, options["root"])).paragraphs)

    train = [paragraph for file in options["files"] for paragraph in read(file)]
    return train, read(options["dev"]) if options["dev"] else []


def _some(paragraphs: Sequence[Paragraph], count: int = 60) -> list[str]:
    """Texts and questions to fit the ranges of int8 on."""
    useful = [paragraph for paragraph in paragraphs if paragraph.questions]
    drawn = random.Random(0).sample(useful, min(count, len(useful)))
    return [one.text for one in drawn] + [one.questions[0].text for one in drawn]


def _pairs(options: dict[str, Any]) -> list[PairText]:
    from ..data.data_files import DataFile, get_text
    from ..training.phrases.phrase_teacher import join_pairs

    if not options["pairs"]:
        return []
    if not options["teacher"]:
        raise InputError("--pairs needs --teacher: their answers are marked by what it trains.")
    lines = DataFile(_found(options["pairs"], options["root"]))
    pairs = lines.parse_rows(
        lines.records(),
        lambda _, record: (get_text(record, "question"), get_text(record, "sentence")),
    )
    lines.check()
    return join_pairs(pairs)


def _found(file: Path, root: Path | None) -> Path:
    return file if file.exists() or root is None else root / file


def _card(name: str, init: str, options: dict[str, Any], measured: dict[str, float]) -> str:
    rows = [f"- {measure} on {options['dev']}: {value:.2f}" for measure, value in measured.items()]
    lines = [
        f"# {name}",
        "",
        f"- Started from: {Path(init).name}",
        f"- Trained on: {', '.join(file.name for file in options['files'])}. "
        "Their licences are those of the weights.",
        *rows,
        "",
        "```",
        shlex.join(["askline", *sys.argv[1:]]),
        "```",
        "",
    ]
    return "\n".join(lines)


def _say(measured: dict[str, float], out: Path) -> None:
    if measured:
        click.echo("  ".join(f"{name} {value:.2f}" for name, value in measured.items()))
    click.echo(f"Written: {out}", err=True)
