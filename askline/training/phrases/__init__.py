"""Training phrase models: an extractor, readers that teach, a siamese encoder."""

from __future__ import annotations

from .export import export_phrases, load_extractor, save_extractor
from .extractor import Extractor, train_extractor
from .fitting import PhraseRecipe
from .network import PhraseNetwork
from .reader import Reader, train_reader
from .siamese import PhraseLoss, train_phrases
from .steps import Means, Plan, fit_extractor, fit_phrases

__all__ = [
    "Extractor",
    "Means",
    "PhraseLoss",
    "PhraseNetwork",
    "PhraseRecipe",
    "Plan",
    "Reader",
    "export_phrases",
    "fit_extractor",
    "fit_phrases",
    "load_extractor",
    "save_extractor",
    "train_extractor",
    "train_phrases",
    "train_reader",
]
