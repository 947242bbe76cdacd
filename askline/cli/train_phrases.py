"""`askline train extractor` and `askline train phrases`: phrase-indexed question answering."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from ..errors import InputError, ModelError
from .options import (
    data_option,
    device_option,
    out_option,
    precision_option,
    require_torch,
    seed_option,
)
from .train_common import (
    batch_size_option,
    checkpoint_beside,
    command_line,
    epochs_option,
    learning_rate_option,
    print_progress,
)

if TYPE_CHECKING:
    from ..data.squad import Paragraph
    from ..evaluation.measures import Language
    from ..phrases.phrase_model import PhraseForm
    from ..training.phrases.phrase_networks import SpanEnds
    from ..training.phrases.phrase_teacher import PairText
    from ..training.phrases.phrase_training import PhraseRecipe
    from ..training.phrases.phrase_workflow import PhraseRun

__all__ = ["extractor", "phrases"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PhraseOptions:
    """The options that both commands have."""

    files: tuple[Path, ...]
    dev: Path | None
    language: Language
    epochs: int
    learning_rate: float
    window: int
    batch_size: int
    out: Path
    root: Path | None
    seed: int
    device: str

    @property
    def recipe(self) -> PhraseRecipe:
        from ..training.phrases.phrase_training import PhraseRecipe

        return PhraseRecipe(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            seed=self.seed,
        )

    def find(self, file: Path) -> Path:
        """A file here, else under --data."""
        return file if file.exists() or self.root is None else self.root / file

    def paragraphs(self) -> tuple[list[Paragraph], list[Paragraph]]:
        """Those to train on, and those of the dev set."""
        from ..data.squad import read_paragraphs

        def read(file: Path) -> list[Paragraph]:
            return list(read_paragraphs(self.find(file)).paragraphs)

        train = [paragraph for file in self.files for paragraph in read(file)]
        return train, read(self.dev) if self.dev else []


def _phrase_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options; the command gets them as one `options` argument."""
    shared = {field.name for field in fields(_PhraseOptions)}

    @wraps(function)
    def command(**values: Any) -> None:
        options = _PhraseOptions(**{name: values.pop(name) for name in shared})
        function(options=options, **values)

    decorated: Callable[..., None] = command
    for option in reversed(
        [
            click.option(
                "--on",
                "files",
                metavar="FILE",
                multiple=True,
                required=True,
                type=click.Path(path_type=Path),
                help="File in SQuAD format to train on, here or under --data. Repeatable.",
            ),
            click.option(
                "--dev",
                metavar="FILE",
                type=click.Path(path_type=Path),
                help="File in SQuAD format to evaluate on.",
            ),
            click.option(
                "--language",
                type=click.Choice(["en", "fr"]),
                default="en",
                show_default=True,
                help="Language whose articles are ignored when phrases are compared.",
            ),
            epochs_option(6),
            learning_rate_option(1e-4),
            click.option(
                "--window",
                metavar="N",
                type=click.IntRange(min=128),
                default=384,
                show_default=True,
                help="Tokens that the encoder reads at a time; at least 128.",
            ),
            batch_size_option(32, "Paragraphs"),
            out_option,
            data_option,
            seed_option,
            device_option,
        ]
    ):
        decorated = option(decorated)
    return decorated


@click.command(short_help="Train an extractor of phrases.")
@click.option(
    "--init", required=True, metavar="DIR", help="Encoder to start from: a folder or a hub name."
)
@click.option(
    "--ends",
    type=click.Choice(["conditional", "classic"]),
    default="conditional",
    show_default=True,
    help="Score the end of a phrase given its start, or alone.",
)
@_phrase_options
def extractor(init: str, *, ends: SpanEnds, options: _PhraseOptions) -> None:
    """
    Train an extractor, which finds the phrases of a text that could be an answer.

    Run the same command again to resume an interrupted training after its last complete epoch.

    \b
    Example:
      askline train extractor --init DIR \\
          --on squadshifts/new_wiki_v1.0.json --out DIR
    """
    require_torch(options.device)
    from ..training.phrases.phrase_export import save_extractor
    from ..training.phrases.phrase_workflow import build_extractor

    run, tokenizer = _run(init, options)
    train, dev = options.paragraphs()
    network, measured = build_extractor(init, train, options.recipe, run, ends=ends, dev=dev)
    card = _card("extractor", init, options, measured)
    save_extractor(network.cpu(), tokenizer, options.out, card=card)
    _finish(options, measured)


@click.command(short_help="Train the phrase model.")
@click.option(
    "--extractor",
    "extractor_folder",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder that `askline train extractor` wrote.",
)
@click.option(
    "--init", metavar="DIR", help="Encoder to start from.  [default: that of the extractor]"
)
@click.option(
    "--form",
    type=click.Choice(["markers", "span"]),
    default="span",
    show_default=True,
    help="Encode a phrase by two marker tokens of its own, or by its first and last token.",
)
@click.option(
    "--lexical/--no-lexical",
    default=True,
    show_default=True,
    help="Add weights of the words around a phrase.",
)
@click.option("--teacher", metavar="DIR", help="Encoder from which two teachers are trained first.")
@click.option(
    "--pairs",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="JSON lines with 'question' and 'sentence'; the teachers mark the answers in them.",
)
@precision_option("weights")
@click.option(
    "--word-bits",
    type=click.Choice(["8", "4"]),
    default="8",
    show_default=True,
    help="Bits per number of the word embeddings with int8. With 4, they are rounded before the "
    "training and not trained.",
)
@_phrase_options
def phrases(
    extractor_folder: Path,
    *,
    init: str | None,
    form: PhraseForm,
    lexical: bool,
    teacher: str | None,
    pairs: Path | None,
    precision: Literal["int8", "float32"],
    word_bits: str,
    options: _PhraseOptions,
) -> None:
    """
    Train the phrase model: vectors of phrases and questions that are close for answers.

    Run the same command again to resume an interrupted training after its last complete epoch.

    \b
    Example:
      askline train phrases --extractor DIR --teacher DIR \\
          --on squadshifts/new_wiki_v1.0.json --out DIR
    """
    require_torch(options.device)
    from ..training.phrases.phrase_export import export_phrases, load_extractor, runtime_config
    from ..training.phrases.phrase_workflow import PhrasePlan, build_phrase_model

    texts = _read_pairs(pairs, teacher, options)
    run, tokenizer = _run(extractor_folder, options)
    train, dev = options.paragraphs()
    bits = cast(Literal[4, 8], int(word_bits))
    plan = PhrasePlan(
        form,
        lexical,
        init,
        teacher=(teacher, options.recipe) if teacher else None,
        pairs=texts,
        word_bits=bits,
    )
    found = load_extractor(extractor_folder).to(run.device)
    encoder = _other_encoder(init, tokenizer) if init else found.encoder
    runtime_config(encoder)  # refuse before the training what cannot be exported
    network, measured = build_phrase_model(found, train, options.recipe, run, plan=plan, dev=dev)
    card = _card("phrases", init or extractor_folder.name, options, measured)
    sample = _calibration_texts(train) if precision == "int8" else []
    export_phrases(network.cpu(), tokenizer, options.out, card=card, texts=sample, bits=bits)
    _finish(options, measured)


def _run(init: str | Path, options: _PhraseOptions) -> tuple[PhraseRun, str]:
    """What training needs, and the tokenizer as the text of its file."""
    from ..phrases.tokenization import load_tokenizer
    from ..training.phrases.phrase_workflow import PhraseRun

    if Path(init).is_dir():
        tokenizer = load_tokenizer(init)
    else:
        from ..training.transformer.cross_encoder_folder import load_tokenizer as load_from_hub

        tokenizer = load_from_hub(init).backend_tokenizer
        tokenizer.no_truncation()
        tokenizer.no_padding()
    run = PhraseRun(
        tokenizer,
        options.device,
        options.language,
        options.window,
        progress=print_progress(epochs_to_stderr=True),
        checkpoint=checkpoint_beside(options.out),
    )
    return run, tokenizer.to_str()


def _other_encoder(init: str, tokenizer: str) -> Any:
    """The encoder to start from in place of the extractor's; its vocabulary must be the same."""
    from ..training.transformer.pair_network import read_encoder

    own = Path(init) / "tokenizer.json"
    texts = [tokenizer, own.read_text("utf-8")] if own.is_file() else [tokenizer]
    known, *other = [json.loads(text)["model"]["vocab"] for text in texts]
    if other and known != other[0]:
        raise ModelError(f"{init} must have the vocabulary of the extractor's tokenizer.")
    return read_encoder(init, plain=False)[0]


def _calibration_texts(paragraphs: Sequence[Paragraph], count: int = 60) -> list[str]:
    """Texts and questions to fit the int8 ranges to."""
    useful = [paragraph for paragraph in paragraphs if paragraph.questions]
    drawn = random.Random(0).sample(useful, min(count, len(useful)))
    return [one.text for one in drawn] + [one.questions[0].text for one in drawn]


def _read_pairs(file: Path | None, teacher: str | None, options: _PhraseOptions) -> list[PairText]:
    from ..data.data_files import DataFile, get_text
    from ..training.phrases.phrase_teacher import join_pairs

    if file is None:
        return []
    if not teacher:
        raise InputError("--pairs needs --teacher, which marks the answers in them.")
    lines = DataFile(options.find(file))
    pairs = lines.parse_rows(
        lines.records(),
        lambda _, record: (get_text(record, "question"), get_text(record, "sentence")),
    )
    lines.check()
    return join_pairs(pairs)


def _card(name: str, init: str, options: _PhraseOptions, measured: Mapping[str, float]) -> str:
    from ..models.folder import ModelCard

    facts = [
        f"Started from: {Path(init).name}",
        f"Trained on: {', '.join(file.name for file in options.files)}. "
        "Their licenses are those of the weights.",
        *(f"{measure} on {options.dev}: {value:.2f}" for measure, value in measured.items()),
    ]
    return ModelCard(name, facts, command=command_line()).to_markdown()


def _finish(options: _PhraseOptions, measured: Mapping[str, float]) -> None:
    """Remove the checkpoints and print the measures."""
    checkpoint = checkpoint_beside(options.out)
    for file in checkpoint.parent.glob(f"{checkpoint.name}.*.pt"):
        file.unlink()
    if measured:
        click.echo("  ".join(f"{name} {value:.2f}" for name, value in measured.items()))
    click.echo(f"Written: {options.out}", err=True)
