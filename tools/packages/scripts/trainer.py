"""transformers' Trainer: `trainer.py MODEL STEPS`; a small network's losses, logged each step."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import torch
import transformers
from shared import FOLDER, WEFT, begin, report

VOCABULARY, LENGTH = 100, 16


def network(kind: str) -> Any:
    """A network of two layers without dropout."""
    torch.manual_seed(0)
    small = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    if kind == "bert":
        config: Any = transformers.BertConfig(
            **small, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=128, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        return transformers.BertForMaskedLM(config)
    if kind == "gpt2":
        config = transformers.GPT2Config(
            **small, n_layer=2, n_head=4, n_embd=64, n_positions=64,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        )  # fmt: skip
        return transformers.GPT2LMHeadModel(config)
    if kind == "llama":
        config = transformers.LlamaConfig(
            **small, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, intermediate_size=128, max_position_embeddings=64,
        )  # fmt: skip
        return transformers.LlamaForCausalLM(config)
    config = transformers.T5Config(
        **small, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


class Texts(torch.utils.data.Dataset):
    """Sequences that count upwards from drawn numbers."""

    def __init__(self, rows: int) -> None:
        first = np.random.default_rng(0).integers(3, VOCABULARY, (rows, 1))
        self.rows = (first + np.arange(LENGTH) - 3) % (VOCABULARY - 3) + 3

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = torch.tensor(self.rows[index])
        return {"input_ids": row, "attention_mask": torch.ones_like(row), "labels": row}


class Ordered(transformers.Trainer):
    """A Trainer that does not shuffle: frameworks draw other orders."""

    def _get_train_sampler(self, *arguments: Any) -> Any:
        return torch.utils.data.SequentialSampler(self.train_dataset)


def main(kind: str, steps: int) -> None:
    """Train, evaluate, save, continue."""
    transformers.set_seed(0)
    model = begin(network(kind), kind)
    folder = FOLDER / f"{kind}-{'weft' if WEFT else 'torch'}"
    options = transformers.TrainingArguments(
        output_dir=str(folder), max_steps=steps, per_device_train_batch_size=8,
        learning_rate=3e-4 if kind == "t5" else 3e-3,  # T5 at 3e-3: 1e-7 apart grows to all digits
        warmup_steps=5, logging_steps=1, report_to=[], weight_decay=0.01,
        save_steps=steps // 2, eval_strategy="steps", eval_steps=steps // 2, use_cpu=True,
        disable_tqdm=True,
    )  # fmt: skip
    trainer = Ordered(model, options, train_dataset=Texts(256), eval_dataset=Texts(32))
    start = time.process_time()
    trainer.train()
    seconds = time.process_time() - start
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    norms = [row["grad_norm"] for row in trainer.state.log_history if "grad_norm" in row]
    report(
        losses=losses, norms=norms, evaluation=trainer.evaluate()["eval_loss"], train=seconds,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
