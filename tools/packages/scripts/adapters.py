"""peft: LoRA on a GPT-2 and a Llama: `adapters.py MODEL STEPS`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import peft
import torch
from shared import FOLDER, WEFT, begin, report
from trainer import VOCABULARY, Texts, network


def main(kind: str, steps: int) -> None:
    """Train, save, load and merge an adapter."""
    base = begin(network(kind), kind)
    target = ["c_attn"] if kind == "gpt2" else ["q_proj", "v_proj"]
    torch.manual_seed(0)
    config = peft.LoraConfig(
        r=4, lora_alpha=8, target_modules=target, task_type="CAUSAL_LM", lora_dropout=0.0
    )
    model = begin(peft.get_peft_model(base, config), f"{kind}-lora")
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    data = torch.utils.data.DataLoader(Texts(8 * steps), batch_size=8)
    losses: list[float] = []
    for batch in data:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    model.eval()
    ids = torch.tensor(np.arange(16)[None] + 3) % VOCABULARY
    logits = model(input_ids=ids).logits.detach()
    with model.disable_adapter():
        plain = model(input_ids=ids).logits.detach()
    folder = FOLDER / f"{kind}-adapter-{'weft' if WEFT else 'torch'}"
    model.save_pretrained(folder)
    again: Any = peft.PeftModel.from_pretrained(begin(network(kind), kind), folder).eval()
    merged = again.merge_and_unload()
    report(
        losses=losses, trained=sum(p.numel() for p in trained), plain=float(plain.double().sum()),
        adapted=float(logits.double().sum()), apart=float((logits - plain).abs().max()),
        loaded=float((merged(input_ids=ids).logits - logits).abs().max()) < 1e-4,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
