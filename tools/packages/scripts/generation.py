"""`generate` of transformers in every mode, and files of models: `generation.py MODEL`."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import torch
import transformers
from shared import FOLDER, WEFT, begin, report
from trainer import network

MODES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 0.8, "min_p": 0.01},
    "beams": {"num_beams": 3, "length_penalty": 0.8, "no_repeat_ngram_size": 2},
    "sampled beams": {"num_beams": 3, "do_sample": True},
    "several of beams": {"num_beams": 4, "num_return_sequences": 2, "early_stopping": True},
    "static cache": {"cache_implementation": "static"},
    "without a cache": {"use_cache": False},
    "penalties": {"repetition_penalty": 1.3, "min_new_tokens": 4, "bad_words_ids": [[5], [6, 7]]},
    "scores": {"output_scores": True, "output_logits": True, "return_dict_in_generate": True},
    "assisted": {"assistant": True},
    "prompt lookup": {"prompt_lookup_num_tokens": 2},
    "streamed": {"stream": True},
}
DRAWN = ("sampled", "sampled beams")


def generated(model: Any, mode: str, ids: Any) -> Any:
    """The tokens of a mode."""
    options = dict(MODES[mode])
    if options.pop("assistant", False):
        options["assistant_model"] = begin(network(sys.argv[1]), sys.argv[1]).eval()
    if options.pop("stream", False):
        options["streamer"] = Streamed()
    rows = ids[:1] if "streamer" in options or mode in ("assisted", "prompt lookup") else ids
    torch.manual_seed(0)
    made = model.generate(rows, attention_mask=torch.ones_like(rows), max_new_tokens=12, **options)
    if "streamer" in options:
        return options["streamer"].tokens
    if mode == "scores":
        return [made.sequences.tolist(), round(float(made.logits[-1].double().sum()), 4)]
    assert made.min() >= 0 and made.max() < 100
    return made.shape[0] if mode in DRAWN else made.tolist()


class Streamed(transformers.generation.streamers.BaseStreamer):
    """Keeps tokens as they come."""

    def __init__(self) -> None:
        self.tokens: list[int] = []

    def put(self, value: Any) -> None:
        """Keep some."""
        self.tokens += value.flatten().tolist()

    def end(self) -> None:
        """Nothing is left."""


def files(model: Any, kind: str, ids: Any) -> Any:
    """Logits of models that either framework has saved, read by this one."""
    own, other = [FOLDER / f"{kind}-saved-by-{name}" for name in ("weft", "torch")]
    mine = own if WEFT else other
    model.save_pretrained(mine)
    found = []
    for folder in (own, other):
        if folder.exists():
            read = type(model).from_pretrained(folder).eval()
            same = all(
                torch.equal(a, b)
                for a, b in zip(
                    read.state_dict().values(), model.state_dict().values(), strict=True
                )
            )
            found.append(same)
    return all(found)


def main(kind: str) -> None:
    """All modes."""
    model = begin(network(kind), kind).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    ids = torch.tensor([[(7 * i + 3 * j) % 90 + 5 for i in range(8)] for j in range(2)])
    found: dict[str, Any] = {}
    for mode in MODES if "-files" not in sys.argv else ():
        try:
            found[mode] = generated(model, mode, ids)
        except Exception as error:  # what PyTorch refuses, too
            if len(sys.argv) > 2:
                traceback.print_exc()
            found[mode] = f"{type(error).__name__}: {error}"
    try:
        found["files"] = files(model, kind, ids)
    except Exception as error:
        if len(sys.argv) > 2:
            traceback.print_exc()
        found["files"] = f"{type(error).__name__}: {error}"
    report(**found)


if __name__ == "__main__":
    main(sys.argv[1])
