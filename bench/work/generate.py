"""Texts that grow by a token at a time: a GPT without a cache, and transformers' `generate`.

The rows of transformers need `pip install transformers` beside PyTorch. It imports torchvision
where that is installed, which has to fit this PyTorch.
"""

from __future__ import annotations

from bench.work.decoder_block import decoder_block

TOKENS, WORDS, WIDTH, HEADS, LAYERS, CONTEXT = 128, 96, 128, 4, 4, 256


def text(torch):
    """128 tokens, each read when it is known; the whole text is read again for the next one."""
    nn, F = torch.nn, torch.nn.functional

    Block = decoder_block(nn, F, WIDTH, HEADS)

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

        def forward(self, ids):
            x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    model = GPT().eval()

    @torch.no_grad()
    def run():
        ids = torch.zeros(1, 1, dtype=torch.int64)
        for _ in range(TOKENS):
            token = model(ids)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, token], dim=1)
            yield token.item()

    return run


def _generated(torch, kind, **options):
    import transformers

    size = {"vocab_size": 1000, "bos_token_id": 0, "eos_token_id": None}
    if kind == "gpt2":
        config = transformers.GPT2Config(n_layer=4, n_head=4, n_embd=128, n_positions=512, **size)
        model = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.LlamaConfig(
            num_hidden_layers=4, num_attention_heads=4, hidden_size=128, intermediate_size=512,
            max_position_embeddings=512, **size,
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(config)
    model.eval()
    ids = torch.tensor([[(7 * i) % 1000 for i in range(5)]])
    options = {"do_sample": False, "pad_token_id": 0, "eos_token_id": None, **options}

    def run():
        found = model.generate(ids, max_new_tokens=TOKENS, **options).tolist()
        yield from found[0][5:]  # one lap for each token

    return run


def gpt2_greedy(torch):
    return _generated(torch, "gpt2")


def gpt2_sampled(torch):
    return _generated(torch, "gpt2", do_sample=True, top_k=50)


def gpt2_beams(torch):
    return _generated(torch, "gpt2", num_beams=3)


def gpt2_static(torch):
    return _generated(torch, "gpt2", cache_implementation="static")


def llama_greedy(torch):
    return _generated(torch, "llama")
