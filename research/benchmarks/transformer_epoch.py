"""
Seconds of one epoch of adapting to WikiQA on a CPU, by its first steps.

    python -m research.benchmarks.transformer_epoch --data DIR --init DIR --steps 6

A few steps of 16 questions are timed, and the epoch is taken to last as much longer as it has more
tokens. `cpu` is the time that the process had of its cores: on a machine with other work it says
what `wall` would be without. Writes research/results/transformer_epoch.json.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch

from askline import data
from askline.training.transformer import PairNetwork, Phase, encode_pairs
from askline.training.transformer.crew import Crew
from askline.training.transformer.cross_encoder import load_tokeniser
from askline.training.transformer.stepping import Stepper
from askline.training.transformer.tanda import ADAPT

from .report import save


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with the datasets")
    parser.add_argument("--init", required=True, help="the folder of the weights to start from")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    pairs = encode_pairs(data.load("wikiqa:train", root=options.data), load_tokeniser(options.init))
    network = PairNetwork.start(options.init).train()
    stepper = Stepper(network, ADAPT.tokens, Crew(), print)
    stepper.start(ADAPT)
    random = np.random.default_rng(0)
    order = random.permutation(len(pairs))
    steps = [order[at : at + ADAPT.batch] for at in range(0, len(order), ADAPT.batch)]
    stepper.step(Phase(pairs, ADAPT), steps[-1], 1e-5, random)  # what is made on first use
    wall, cpu = time.perf_counter(), time.process_time()
    timed = steps[: options.steps]
    for chosen in timed:
        stepper.step(Phase(pairs, ADAPT), chosen, 1e-5, random)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    tokens = [int(pairs.lengths(pairs.rows(chosen)).sum()) for chosen in steps]
    longer = sum(tokens) / sum(tokens[: len(timed)])
    figures = {
        "questions": len(pairs),
        "pairs": len(pairs.tokens),
        "steps": {"timed": len(timed), "in an epoch": len(steps)},
        "threads": options.threads,
        "load average": round(os.getloadavg()[0], 1),
        "measured seconds": {"wall": round(wall, 1), "cpu": round(cpu, 1)},
        "seconds of an epoch": {"wall": round(wall * longer), "cpu": round(cpu * longer)},
        "parameters": sum(p.numel() for p in network.parameters()),
    }
    print(figures)
    print(f"Kept in {save('transformer_epoch', figures, 'torch', 'transformers')}")


if __name__ == "__main__":
    main()
