"""
The cross-encoder network: an encoder with a head that scores (question, candidate) pairs.

Many pairs are scored in batches of similar length under a token budget, in bfloat16 on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ...errors import InputError, ModelError, UnknownNameError, require_extra
from ...evaluation import Run, make_qrels, score_run
from ...evaluation.measures import FloatArray
from ...rankers.requests import sort_by_score
from ...types import QuestionSet
from ..packing import PackedBatch, bert_embed, bert_layer, is_bert
from .pair_sets import PairSet, token_batches

__all__ = [
    "HEADS",
    "FirstTokenHead",
    "Head",
    "MeanHead",
    "PairNetwork",
    "autocast",
    "import_transformers",
    "list_scores",
    "load_head",
    "measure",
    "measure_scores",
    "pair_scores",
]


class FirstTokenHead(nn.Module):
    """
    The first token, one hidden layer of 256, and two outputs.

    The score is the log-odds of the first output ("answers") against the second; its sigmoid is the
    softmax of the two.
    """

    def __init__(self, width: int, *, hidden: int = 256, dropout: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, 2)
        )

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002
        """States (pairs, tokens, width) → (pairs,)."""
        outputs: Tensor = self.layers(states[:, 0])
        return outputs[:, 0] - outputs[:, 1]


class MeanHead(nn.Module):
    """
    The head of the Cascade Transformer: the mean over all tokens and three layers.

    Each layer has the width of the encoder and is followed by tanh and dropout. One more linear
    layer, which the paper does not name, gives the score.
    """

    def __init__(self, width: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(3):
            layers += [nn.Linear(width, width), nn.Tanh(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """States (pairs, tokens, width) and attention mask (pairs, tokens) → (pairs,)."""
        weights = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1)
        return torch.squeeze(self.layers(mean), -1)


Head = Literal["plain", "first-token", "mean"]
HEADS: tuple[str, ...] = get_args(Head)
"""`plain` is the classifier of the encoder's family, as in CrossEncoder folders."""

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def import_transformers() -> Any:
    """The library; MissingExtraError names the extra that installs it."""
    return require_extra("transformers", purpose="A transformer", extra="train")


class PairNetwork(nn.Module):
    """Scores of (question, candidate) pairs as logits: higher is better."""

    def __init__(self, encoder: nn.Module, head: Head, scorer: nn.Module | None) -> None:
        super().__init__()
        self.encoder, self.head, self.scorer = encoder, head, scorer

    @classmethod
    def start(
        cls, name: str | PathLike[str], *, head: Head = "plain", depth: int | None = None
    ) -> PairNetwork:
        """
        An encoder from a folder or a hub name with a head, which is new unless the folder has it.

        `depth` keeps that many of the lowest layers. Weights must be safetensors; pickles are never
        read.
        """
        if head not in HEADS:
            raise UnknownNameError("head", head, HEADS)
        encoder, _ = read_encoder(name, plain=head == "plain")
        if depth is not None:
            _cut(encoder, depth)
        width: int = encoder.config.hidden_size
        if head == "plain":
            return cls(encoder, head, None)
        return cls(
            encoder, head, FirstTokenHead(width) if head == "first-token" else MeanHead(width)
        )

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """A batch of `PairSet.collate` → (pairs,)."""
        if self.scorer is None:
            logits: Tensor = self.encoder(**batch).logits  # (pairs, 1)
            return logits[:, 0].float()
        states = self.encoder(**batch).last_hidden_state  # (pairs, tokens, width)
        scores: Tensor = self.scorer(states, batch["attention_mask"])
        return scores.float()

    @property
    def packs(self) -> bool:
        """Whether `packed` can run: BERT encoders with any head."""
        return is_bert(self._base)

    def packed(self, batch: PackedBatch) -> Tensor:
        """
        The same scores for a packed batch, without computing padding.

        On a GPU the layers run in bfloat16 and the head in float32: with the three digits of
        bfloat16, close scores would become ties.
        """
        states = bert_embed(self._base, batch)
        for layer in encoder_layers(self.encoder):
            states = bert_layer(layer, states, batch)
        states = states.float()  # (tokens, width)
        if self.head == "mean":
            return self._scorer(*_padded(states, batch))
        first = states[batch.starts[:-1].long()].unsqueeze(1)  # (pairs, 1, width)
        if self.scorer is not None:
            return self._scorer(first, first)
        encoder: Any = self.encoder
        logits: Tensor = encoder.classifier(encoder.dropout(self._base.pooler(first)))
        return logits[:, 0]

    def _scorer(self, states: Tensor, mask: Tensor) -> Tensor:
        assert self.scorer is not None  # only the plain head has none
        scores: Tensor = self.scorer(states, mask)
        return scores

    @property
    def _base(self) -> Any:
        encoder: Any = self.encoder
        return encoder.base_model

    @property
    def depth(self) -> int:
        """Layers of the encoder."""
        return len(encoder_layers(self.encoder))


def _padded(states: Tensor, batch: PackedBatch) -> tuple[Tensor, Tensor]:
    """(tokens, width) → (pairs, longest, width), and the attention mask."""
    where = (batch.owners, batch.positions)
    full = states.new_zeros(len(batch), batch.longest, states.shape[-1]).index_put(where, states)
    mask = states.new_zeros(len(batch), batch.longest)
    mask[where] = 1
    return full, mask


def read_encoder(name: str | PathLike[str], *, plain: bool) -> tuple[Any, list[str]]:
    """The encoder, and the names of weights that are missing in its folder."""
    library = import_transformers()
    if Path(name).is_dir():
        _check_folder(Path(name))
    kind = library.AutoModelForSequenceClassification if plain else library.AutoModel
    options: dict[str, Any] = {"num_labels": 1} if plain else {}
    try:
        encoder, info = kind.from_pretrained(
            name,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused below, by name
            dtype="float32",
            **options,
        )
    except Exception as error:  # the library raises many kinds of errors
        raise ModelError(
            f"{name} cannot be loaded as a transformer: {str(error).rstrip('.')}. Check that the "
            "folder is complete and its weights fit its config."
        ) from error
    wrong = [_misfit(*key) for key in sorted(info.get("mismatched_keys", ()))]
    if wrong:
        more = f", and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ModelError(
            f"The weights in {name} do not fit its config: {', '.join(wrong[:3])}{more}."
        )
    return encoder, sorted(info["missing_keys"])


def load_head(head: nn.Module, path: Path) -> None:
    """Load the weights of the layers that stand on an encoder."""
    try:
        head.load_state_dict(load_file(path))
    except (SafetensorError, RuntimeError) as error:
        raise ModelError(f"{path} is damaged or belongs to another network: {error}") from error


def _misfit(weight: str, found: Sequence[int], expected: Sequence[int]) -> str:
    return f"{weight} has shape {tuple(found)}, expected {tuple(expected)}"


def _check_folder(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise ModelError(f"No config.json in {folder}. Name a Hugging Face model folder.")
    if any(folder.glob("*.safetensors")):
        return
    pickles = sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern))
    about = f" It has {', '.join(pickles)}, but pickled weights are never read." if pickles else ""
    raise ModelError(f"No .safetensors file in {folder}.{about}")


def _cut(encoder: Any, depth: int) -> None:
    layers = encoder_layers(encoder)
    if not 1 <= depth <= len(layers):
        raise InputError(f"depth must be from 1 to {len(layers)}, got {depth}.")
    del layers[depth:]
    encoder.config.num_hidden_layers = depth


def encoder_layers(encoder: Any) -> nn.ModuleList:
    """The layers of BERT, RoBERTa, MPNet, ELECTRA and DeBERTa encoders."""
    layers = getattr(getattr(encoder.base_model, "encoder", None), "layer", None)
    if not isinstance(layers, nn.ModuleList):
        kind = type(encoder).__name__
        raise ModelError(f"{kind} has no list of layers at encoder.layer, so it cannot be cut.")
    return layers


SCORING_TOKENS = 32_768
"""Padded tokens in one forward pass without gradients."""
MEASURES = ("MAP", "MRR", "P@1")


def autocast(device: torch.device) -> AbstractContextManager[object]:
    """bfloat16 for the matrix products on a GPU; on a CPU nothing changes."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def pair_scores(
    network: PairNetwork, pairs: PairSet, rows: NDArray[np.int64], *, max_tokens: float
) -> Tensor:
    """(rows,) in the order of `rows`, independent of the batches; with gradients if enabled."""
    device = next(network.parameters()).device
    packed = device.type == "cuda" and network.packs
    parts, places = [], []
    for batch in token_batches(pairs.lengths(rows), max_tokens):
        places.append(batch)
        if packed:
            parts.append(network.packed(pairs.pack(rows[batch], device)))
        else:
            with autocast(device):
                parts.append(network(pairs.collate(rows[batch], device)))
    back = np.argsort(np.concatenate(places), kind="stable")
    return torch.cat(parts)[torch.from_numpy(back).to(device)]


def list_scores(network: PairNetwork, pairs: PairSet) -> Iterator[FloatArray]:
    """The scores of each question's candidates, question after question."""
    network.eval()
    with torch.inference_mode():
        rows = np.arange(len(pairs.tokens))
        scores = pair_scores(network, pairs, rows, max_tokens=SCORING_TOKENS)
    values = scores.double().cpu().numpy()
    for start, end in zip(pairs.offsets, pairs.offsets[1:], strict=False):
        yield values[start:end]


def measure(
    network: PairNetwork,
    questions: QuestionSet,
    pairs: PairSet,
    *,
    measures: tuple[str, ...] = MEASURES,
) -> dict[str, float]:
    """Measure → the mean over all questions, in percent. `pairs` are those of `questions`."""
    return measure_scores(questions, list_scores(network, pairs), measures=measures)


def measure_scores(
    questions: QuestionSet,
    scores: Iterable[FloatArray],
    *,
    measures: tuple[str, ...] = MEASURES,
) -> dict[str, float]:
    """The same from existing scores, one array per question."""
    run = Run.from_hits("network", zip(questions, map(sort_by_score, scores), strict=True))
    values = score_run(run, make_qrels(questions), measures=measures)
    return {name: 100 * float(each.mean()) for name, each in values.items()}
