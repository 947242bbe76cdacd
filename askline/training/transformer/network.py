"""An encoder and its head, as one network over batches of token pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from torch import Tensor, nn

from ...errors import InputError, ModelError, UnknownNameError, require_extra
from ..packed.bert import bert_embed, bert_layer, is_bert
from ..packed.packing import Packed
from .heads import FirstTokenHead, MeanHead

__all__ = ["HEADS", "Head", "PairNetwork", "transformers"]

Head = Literal["plain", "first-token", "mean"]
HEADS: tuple[str, ...] = get_args(Head)
"""`plain` is the encoder family's own classifier, which CrossEncoder folders have."""

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def transformers() -> Any:
    """The library, or a word on which extra brings it."""
    return require_extra("transformers", purpose="A transformer", extra="train")


class PairNetwork(nn.Module):
    """Scores (question, candidate) pairs; higher is better, and a sigmoid makes it a chance."""

    def __init__(self, encoder: nn.Module, head: Head, scorer: nn.Module | None) -> None:
        super().__init__()
        self.encoder, self.head, self.scorer = encoder, head, scorer

    @classmethod
    def start(
        cls, name: str | PathLike[str], *, head: Head = "plain", depth: int | None = None
    ) -> PairNetwork:
        """
        An encoder from a folder (or a hub name) with a head, which is new unless the folder has it.

        `depth` keeps that many of the lowest layers. Weights must be safetensors: a pickle is never
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
        """A batch as `collate` makes it → (pairs,)."""
        if self.scorer is None:
            logits: Tensor = self.encoder(**batch).logits  # (pairs, 1)
            return logits[:, 0].float()
        states = self.encoder(**batch).last_hidden_state  # (pairs, tokens, width)
        scores: Tensor = self.scorer(states, batch["attention_mask"])
        return scores.float()

    @property
    def packs(self) -> bool:
        """Whether `packed` can run: an encoder of BERT's family under any head."""
        return is_bert(self._base)

    def packed(self, batch: Packed) -> Tensor:
        """
        The same scores of pairs that lie end to end, without a pass over padding.

        On a GPU the layers run in bfloat16 and the head in float32: bfloat16 has three digits, and
        scores of candidates that differ in the fourth would be ties.
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

    def _scorer(self, states: Tensor, inside: Tensor) -> Tensor:
        assert self.scorer is not None  # only the plain head has none
        scores: Tensor = self.scorer(states, inside)
        return scores

    @property
    def _base(self) -> Any:
        encoder: Any = self.encoder
        return encoder.base_model

    @property
    def depth(self) -> int:
        """Layers of the encoder."""
        return len(encoder_layers(self.encoder))


def _padded(states: Tensor, batch: Packed) -> tuple[Tensor, Tensor]:
    """(tokens, width) → (pairs, longest, width), and 1 where there is a token."""
    where = (batch.owners, batch.places)
    full = states.new_zeros(len(batch), batch.longest, states.shape[-1]).index_put(where, states)
    inside = states.new_zeros(len(batch), batch.longest)
    inside[where] = 1
    return full, inside


def read_encoder(name: str | PathLike[str], *, plain: bool) -> tuple[Any, list[str]]:
    """The encoder, and the names of the weights that its folder does not have."""
    library = transformers()
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
    except Exception as error:  # the library raises of many kinds, some of them its own
        raise ModelError(
            f"{name} cannot be loaded as a transformer: {str(error).rstrip('.')}. Check that the "
            "folder is whole and its weights fit its config."
        ) from error
    wrong = [_misfit(*key) for key in sorted(info.get("mismatched_keys", ()))]
    if wrong:
        more = f", and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ModelError(
            f"The weights in {name} do not fit its config: {', '.join(wrong[:3])}{more}."
        )
    return encoder, sorted(info["missing_keys"])


def _misfit(weight: str, found: Sequence[int], expected: Sequence[int]) -> str:
    return f"{weight} is {tuple(found)} where {tuple(expected)} is expected"


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
    """BERT, RoBERTa, MPNet, ELECTRA and DeBERTa all keep their layers at this place."""
    layers = getattr(getattr(encoder.base_model, "encoder", None), "layer", None)
    if not isinstance(layers, nn.ModuleList):
        kind = type(encoder).__name__
        raise ModelError(f"{kind} keeps no list of layers at encoder.layer, so it cannot be cut.")
    return layers
