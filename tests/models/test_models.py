"""Every model learns a small task, and has the documented number of parameters."""

from itertools import product

import numpy as np
import pytest

import weft as wf
from weft import models, nn
from weft.errors import ArgumentError, ShapeError
from weft.nn import functional as F

rng = np.random.default_rng(0)


def images(n, size, channels=3):
    return wf.tensor(rng.standard_normal((n, channels, size, size)).astype(np.float32))


def words(*shape, vocabulary=20):
    return wf.tensor(rng.integers(0, vocabulary, shape))


def classify(model, size, channels=3):
    x, y = images(4, size, channels), wf.tensor([0, 1, 2, 3])
    return model, lambda: F.cross_entropy(model(x), y)


def following(logits, ids):
    return F.cross_entropy(logits.flatten(0, 1), ids.flatten())


def gpt():
    model = models.GPT(20, context=8, layers=2, heads=2, width=16, tied=True)
    ids = words(4, 9)
    return model, lambda: following(model(ids[:, :-1]), ids[:, 1:])


def bert():
    model = models.BERT(20, 8, layers=2, heads=2, width=16, dropout=0.0)
    ids, seen = words(4, 8), wf.tensor(np.arange(8) < np.array([[8], [5], [3], [1]]))
    labels = wf.tensor([0, 1, 0, 1])

    def loss():
        states = model(ids, wf.zeros_like(ids), seen)
        return following(model.words(states), ids) + F.cross_entropy(model.classes(states), labels)

    return model, loss


def gnmt():
    model = models.GNMT(20, 16, dropout=0.0)
    source, target = words(3, 5), words(3, 6)
    return model, lambda: following(model(source, target[:, :-1]), target[:, 1:])


def neumf():
    model = models.NeuMF(10, 12, 4, (16, 8, 4))
    users, items = words(16, vocabulary=10), words(16, vocabulary=12)
    liked = wf.tensor(rng.integers(0, 2, 16).astype(np.float32))
    return model, lambda: F.binary_cross_entropy_with_logits(model(users, items), liked)


def bag():
    model = models.BagOfEmbeddings(20, 8, 3)
    texts, labels = words(6, 5), wf.tensor([0, 1, 2, 0, 1, 2])
    return model, lambda: F.cross_entropy(model(texts), labels)


def unet():
    model = models.UNet(1, 2, width=4, depth=2)
    x, labels = images(2, 16, 1), words(2, 16, 16, vocabulary=2)
    return model, lambda: F.cross_entropy(model(x), labels)


def vae():
    model = models.VAE(36, 16, 4)
    x = wf.tensor((rng.uniform(size=(8, 36)) < 0.2).astype(np.float32))
    return model, lambda: model.loss(x)


def dcgan():
    maker, judge = models.Generator(8, 8, 1, 16), models.Discriminator(8, 1, 16)
    noise = wf.randn(4, 8, 1, 1)
    both = nn.ModuleList([maker, judge])
    return both, lambda: F.softplus(-judge(maker(noise))).mean()


SMALL = {
    "ResNet18": lambda: classify(models.ResNet(models.resnet.Basic, (1, 1), 4, 8), 32),
    "ResNet50": lambda: classify(models.ResNet(models.resnet.Bottleneck, (1, 1), 4, 4), 32),
    "MobileNetV1": lambda: classify(models.MobileNetV1(4, 0.25), 32),
    "MobileNetV2": lambda: classify(models.MobileNetV2(4, 0.25, 0.0), 32),
    "VGG": lambda: classify(models.VGG(((4,), (8, 8)), 4, 0.0, 16, 32), 16),
    "ViT": lambda: classify(models.ViT(16, 8, 4, layers=2, heads=2, width=16), 16),
    "GPT": gpt, "BERT": bert, "GNMT": gnmt, "NeuMF": neumf, "Bag": bag, "UNet": unet,
    "VAE": vae, "DCGAN": dcgan,
}  # fmt: skip
COMPILED = ("ResNet18", "GPT", "GNMT")
"""Whose steps become programs; all else stays lists of library kernels."""


@pytest.fixture(autouse=True)
def tier(request):
    if request.node.name not in {f"test_a_model_learns[{name}]" for name in COMPILED}:
        request.getfixturevalue("as_lists")


@pytest.mark.parametrize("name", SMALL)
def test_a_model_learns(name):
    wf.manual_seed(0)
    model, loss = SMALL[name]()
    optimizer = wf.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    assert np.isfinite(losses).all()
    assert np.mean(losses[-3:]) < 0.95 * losses[0]
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (models.MobileNetV1, 4_231_976),
        (models.MobileNetV2, 3_504_872),
        (models.resnet18, 11_689_512),
        (models.resnet50, 25_557_032),
        (models.ViT, 86_567_656),
        (models.UNet, 31_036_546),
    ],
)
def test_parameters(make, parameters):
    assert sum(p.numel() for p in make().parameters()) == parameters


def test_generation_continues():
    wf.manual_seed(0)
    model = models.GPT(20, context=8, layers=1, heads=2, width=16)
    ids = words(2, 3)
    found = model.generate(ids, 10)
    assert found.shape == (2, 13)
    np.testing.assert_array_equal(found[:, :3].numpy(), ids.numpy())


@pytest.mark.parametrize("count", [1, 4, 12])
def test_generation_by_cache_is_that_of_the_whole_text(count):
    wf.manual_seed(0)
    model = models.GPT(20, context=10, layers=2, heads=2, width=16).eval()
    ids = words(2, 3)
    found = model.generate(ids, count, temperature=0)
    wanted = ids
    with wf.no_grad():
        for _ in range(count):
            best = model(wanted[:, -10:])[:, -1].argmax(-1)
            wanted = wf.cat([wanted, best.unsqueeze(1)], 1)
    assert found.tolist() == wanted.tolist()
    streamed = []
    again = model.generate(ids, count, temperature=0, stream=lambda x: streamed.append(x.tolist()))
    assert again.tolist() == wanted.tolist()
    assert streamed == wanted[:, 3:].T.tolist()
    assert model.generate(ids, count, top_k=1).tolist() == wanted.tolist()
    assert model.generate(ids, count, top_p=1e-6).tolist() == wanted.tolist()


def test_generation_stops_and_is_seeded():
    wf.manual_seed(0)
    model = models.GPT(5, context=40, layers=1, heads=2, width=16).eval()
    ids = words(3, 2) % 5
    wf.manual_seed(1)
    found = model.generate(ids, 38, temperature=2.0, stop=4)
    wf.manual_seed(1)
    assert model.generate(ids, 38, temperature=2.0, stop=4).tolist() == found.tolist()
    assert found.shape[1] < 40
    assert found[:, -1].tolist() == [4, 4, 4]
    for row in found[:, 2:].tolist():
        assert set(row[row.index(4) :]) == {4}
    either = model.generate(ids, 38, temperature=2.0, stop=(3, 4))
    for row in either[:, 2:].tolist():
        assert len({*row[next(i for i, x in enumerate(row) if x > 2) :]}) == 1
    with pytest.raises(ArgumentError, match=r"top_p: expected a number in \(0, 1\], got 2"):
        model.generate(ids, 1, top_p=2)
    with pytest.raises(ArgumentError, match="count: expected 0 or more, got -1"):
        model.generate(ids, -1)
    with pytest.raises(ShapeError, match=r"L of 1 or more, got \(3, 0\)"):
        model.generate(ids[:, :0], 1)


@pytest.mark.parametrize("length", [1, 34, 39, 44])
def test_a_long_prompt_streamed_is_the_same_text(length):
    wf.manual_seed(0)
    model = models.GPT(20, context=40, layers=2, heads=2, width=16).eval()
    ids = words(2, length)
    draws = [wf.Generator().manual_seed(7) for _ in range(3)]
    streamed = []
    one = model.generate(ids, 6, top_k=15, top_p=0.9, generator=draws[0])
    two = model.generate(
        ids, 6, top_k=15, top_p=0.9, generator=draws[1], stream=lambda x: streamed.append(x)
    )
    assert one.tolist() == two.tolist() == wf.cat([ids, wf.stack(streamed, 1)], 1).tolist()
    assert one.shape == (2, length + 6)
    best = model.generate(ids, 6, temperature=0)
    with wf.no_grad():
        for i in range(length, length + 6):
            wanted = model(best[:, max(0, i - 40) : i])[:, -1].argmax(-1)
            assert best[:, i].tolist() == wanted.tolist()


def likeliest(model, ids, count, penalty, stop):
    """The best text of all, by the probabilities of every one of them."""
    best = (-np.inf, [])
    for added in product(range(5), repeat=count):
        ends = [i for i, x in enumerate(added) if x == stop]
        if ends and {*added[ends[0] :]} != {stop}:
            continue
        n = ends[0] + 1 if ends else count
        text = wf.tensor([[*ids, *added]])
        chances = wf.log_softmax(model(text[:, :-1]), -1)[0, len(ids) - 1 :]
        total = sum(chances[i, x].item() for i, x in enumerate(added[:n]))
        best = max(best, (total / ((5 + n) / 6) ** penalty, [*ids, *added]))
    return best


@pytest.mark.parametrize(("penalty", "stop"), [(0.0, None), (0.0, 3), (2.0, 3)])
def test_wide_beams_find_the_likeliest_text(penalty, stop):
    wf.manual_seed(3)
    model = models.GPT(5, context=8, layers=1, heads=2, width=16).eval().double()
    for p in model.parameters():
        p.data *= 8.0  # texts of different probabilities
    ids = words(2, 3) % 5
    with wf.no_grad():
        texts, scores = model.beam_search(ids, 3, 75, penalty, stop)
        for row, text, score in zip(ids.tolist(), texts, scores, strict=True):
            wanted, best = likeliest(model, row, 3, penalty, stop)
            assert text[0].tolist() == best[: texts.shape[2]]
            np.testing.assert_allclose(score[0].item(), wanted, rtol=1e-9)


def test_one_beam_takes_the_likeliest_token():
    wf.manual_seed(0)
    model = models.GPT(20, context=48, layers=2, heads=2, width=16).eval()
    ids = words(2, 36)
    texts, scores = model.beam_search(ids, 10, beams=1)
    assert texts[:, 0].tolist() == model.generate(ids, 10, temperature=0).tolist()
    wide = model.beam_search(ids, 10, beams=6)[1]
    assert (wide[:, 0] >= scores[:, 0] - 1e-4).all().item()
    assert (wide[:, :-1] >= wide[:, 1:]).all().item()
    half = model.bfloat16().beam_search(ids, 10, beams=6)
    assert half[0].shape == (2, 6, 46) and half[1].dtype == wf.float32
    with pytest.raises(ArgumentError, match="beams: expected 1 or more, got 0"):
        model.beam_search(ids, 1, beams=0)
    with pytest.raises(ShapeError, match="at most 48 tokens, got 36 and 13 more"):
        model.beam_search(ids, 13)


def test_translation_by_states_is_that_of_the_whole_text():
    wf.manual_seed(0)
    model = models.GNMT(12, width=8, dropout=0.0).eval()
    for p in model.parameters():
        p.data *= 3.0  # words of different probabilities
    source = words(3, 7) % 12
    wanted = wf.full((3, 1), 1, dtype=wf.int64)
    with wf.no_grad():
        for _ in range(5):
            best = model(source, wanted)[:, -1].argmax(-1, keepdim=True)
            wanted = wf.cat([wanted, best], 1)
    streamed = []
    assert model.generate(source, 1, 5).tolist() == wanted.tolist()
    found = model.generate(source, 1, 5, top_k=1, temperature=2.0, stream=streamed.append)
    assert found.tolist() == wanted.tolist()
    assert wf.stack(streamed, 1).tolist() == wanted[:, 1:].tolist()
    assert model.beam_search(source, 1, 5, beams=1)[0][:, 0].tolist() == wanted.tolist()
    texts, scores = model.beam_search(source, 1, 5, beams=4, length_penalty=0.0)
    with wf.no_grad():
        for row in range(3):
            chances = wf.log_softmax(model(source[row : row + 1], texts[row, :1, :-1]), -1)[0]
            total = chances.gather(1, texts[row, 0, 1:, None]).sum()
            np.testing.assert_allclose(total.item(), scores[row, 0].item(), rtol=1e-5)


class Sums(wf.nn.Module):
    """A module without `begin`: logits follow from the sum of all tokens."""

    def __init__(self):
        super().__init__()
        self.table = wf.nn.Embedding(7, 7)

    def step(self, tokens, position, cache):
        total = cache[0] + self.table(tokens)
        return total, (total,)


def test_any_module_that_takes_a_cache():
    wf.manual_seed(0)
    model, ids = Sums(), words(2, 4) % 7
    cache = [wf.zeros(2, 7)]
    found = models.generate(model, ids, 5, cache=cache, temperature=0)
    wanted = ids
    for _ in range(5):
        best = model.table(wanted).sum(1).argmax(-1, keepdim=True)
        wanted = wf.cat([wanted, best], 1)
    assert found.tolist() == wanted.tolist()
    one = models.beam_search(model, ids, 5, cache=cache, beams=1)[0]
    assert one[:, 0].tolist() == wanted.tolist()
    best, scores = models.beam_search(model, ids, 3, cache=cache, beams=49, length_penalty=0.0)
    for row in range(2):
        totals = []
        for text in product(range(7), repeat=3):
            whole = wf.cat([ids[row], wf.tensor(text)])
            sums = model.table(whole).cumsum(0)[3:-1].log_softmax(-1)
            totals.append(sum(sums[i, x].item() for i, x in enumerate(text)))
        np.testing.assert_allclose(scores[row, 0].item(), max(totals), rtol=1e-5)


def test_too_long_a_text_raises():
    model = models.GPT(20, context=8, layers=1, heads=2, width=16)
    with pytest.raises(ShapeError, match="at most 8 tokens, got 9"):
        model(words(1, 9))


def test_a_vae_draws():
    assert models.VAE(36, 16, 4).draw(3).shape == (3, 36)
