"""Every program in `examples/` runs, and learns, with few steps."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LIBRARY = {"common"}  # what the programs share
COMPILED = {"test_digits", "test_gpt", "test_images", "test_resume", "test_trainer"}
"""Of those that are always run, whose steps become programs; others stay library kernels."""


@pytest.fixture(autouse=True)
def tier(request: pytest.FixtureRequest) -> None:
    if request.node.originalname not in COMPILED and not request.node.get_closest_marker("slow"):
        request.getfixturevalue("as_lists")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a program: what `main` returns, and what it prints."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def run(name: str, *arguments: str) -> tuple[Any, str]:
        result = importlib.import_module(name).main(arguments)
        return result, capsys.readouterr().out

    return run


def printed(text: str, before: str) -> float:
    """The number after these words."""
    found = re.search(re.escape(before) + r" ([0-9]+([.][0-9]+)?)", text)
    assert found, f"expected {before!r} and a number in:\n{text}"
    return float(found[1])


def test_digits(run: Any) -> None:
    accuracies, text = run("digits", "--steps", "60")
    assert min(accuracies) > 0.8  # 0.1 by chance
    assert text.count("test accuracy") == 3


def test_tf1_digits(run: Any) -> None:
    (regression, network), text = run("tf1_digits", "--steps", "100")
    assert regression > 0.8 and network > 0.8  # 0.1 by chance
    assert text.count("test accuracy") == 2


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--sync", "--workers", "3", "--backup", "1")])
def test_distributed_mnist(run: Any, more: tuple[str, ...]) -> None:
    accuracy, text = run("distributed_mnist", "--steps", "100", *more)
    assert accuracy > 0.8  # 0.1 by chance; how far workers are behind depends on the machine
    assert text.count("test accuracy") == 1


@pytest.mark.slow
def test_wide_and_deep(run: Any) -> None:
    area, text = run("wide_and_deep", "--steps", "300")
    assert area > 0.75  # 0.5 by chance
    assert "ids in 7 tables on 2 servers" in text


# 0.1 by chance.
@pytest.mark.parametrize(
    ("model", "steps", "least"),
    [
        ("mlp", 60, 0.8), ("cnn", 60, 0.6), ("resnet", 40, 0.7),
        pytest.param("vgg", 60, 0.4, marks=pytest.mark.slow),
        pytest.param("vit", 60, 0.3, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_images(run: Any, model: str, steps: int, least: float) -> None:
    accuracy, text = run("images", "--model", model, "--steps", str(steps))
    assert accuracy > least
    assert printed(text, "test accuracy") == pytest.approx(accuracy, abs=1e-3)


@pytest.mark.slow  # texts are continued in tests/models
def test_complete(run: Any, tmp_path: Path) -> None:
    common = ("--model", str(tmp_path / "model.pt"), "--prompt", "def __init__(se", "--count", "8")
    first, text = run("complete", "--steps", "20", *common)
    again, read = run("complete", *common)  # from the file, the same seed
    assert first == again
    assert first[0].startswith("\ndef __init__(se") and 1 <= len(first[0]) - 16 <= 8
    assert text.endswith(read) and read.startswith(first[0][1:])


def test_elastic(run: Any) -> None:
    accuracy, text = run("elastic", "--steps", "30")
    assert accuracy > 0.7 and "on 1 ranks after 30 steps" in text


def test_stages(run: Any) -> None:
    accuracy, text = run("stages", "--steps", "30")
    assert accuracy > 0.6 and "on 1 stages" in text


@pytest.mark.slow  # models in shards are trained in tests/distributed
def test_sharded(run: Any) -> None:
    bits, text = run("sharded", "--steps", "15")
    assert bits < 6 and "636032 parameters on this rank" in text


def test_trainer(run: Any) -> None:
    whole, text = run("trainer", "--steps", "120")
    parts, other = run("trainer", "--steps", "120", "--stop", "70")
    assert parts == whole  # to the last bit
    assert printed(text, "test accuracy") == printed(other, "test accuracy") > 0.8
    assert "stopped at step 70" in other


def test_parallel(run: Any) -> None:
    (accuracy, _), text = run("parallel", "--steps", "60")
    assert accuracy > 0.6
    assert printed(text, "test accuracy") == pytest.approx(accuracy, abs=1e-3)


@pytest.mark.parametrize("options", [(), pytest.param(("--bfloat16",), marks=pytest.mark.slow)])
def test_gpt(run: Any, options: tuple[str, ...]) -> None:
    bits, text = run("gpt", "--steps", "30", "--sample", "20", *options)
    assert bits < 4.5  # 7 before training
    assert printed(text, "test:") == pytest.approx(bits, abs=1e-2)
    assert text.count("def ") >= 1  # the sample's beginning


@pytest.mark.slow
def test_bert(run: Any) -> None:
    (accuracy, spaces), text = run("bert", "--steps", "300")
    assert accuracy > spaces + 0.03
    assert printed(text, "masked accuracy") == pytest.approx(accuracy, abs=1e-3)
    assert printed(text, "only spaces") == pytest.approx(spaces, abs=1e-3)


@pytest.mark.slow
def test_translation(run: Any) -> None:
    (exact, letters), text = run("translation", "--steps", "200")
    assert letters > 0.5  # 0.44 without a look at the source
    assert printed(text, "letters") == pytest.approx(letters, abs=1e-3)
    assert printed(text, "exact matches") == pytest.approx(exact, abs=1e-3)


@pytest.mark.slow  # of its kind, test_many_to_one is always run
def test_attention(run: Any) -> None:
    (exact, letters), text = run("attention", "--steps", "120")
    assert letters > 0.5
    assert printed(text, "letters") == pytest.approx(letters, abs=1e-3)
    assert printed(text, "exact matches") == pytest.approx(exact, abs=1e-3)


@pytest.mark.slow  # of its kind, test_many_to_one is always run
def test_one_to_many(run: Any) -> None:
    right, text = run("one_to_many", "--steps", "150")
    assert right > 0.5
    assert printed(text, "names that are right") == pytest.approx(right, abs=1e-3)


def test_many_to_one(run: Any) -> None:
    accuracy, text = run("many_to_one", "--steps", "150")
    assert accuracy > 0.6  # 0.1 by chance
    assert printed(text, "after 28 rows: accuracy") == pytest.approx(accuracy, abs=1e-3)


@pytest.mark.slow  # of its kind, test_many_to_one is always run
def test_many_to_many(run: Any) -> None:
    (accuracy, usual), text = run("many_to_many", "--steps", "100")
    assert accuracy > usual + 0.2
    assert printed(text, "tags that are right") == pytest.approx(accuracy, abs=1e-3)
    assert printed(text, "the most frequent tag") == pytest.approx(usual, abs=1e-3)


@pytest.mark.slow  # the network learns in tests/models
def test_recommendation(run: Any) -> None:
    rate, text = run("recommendation", "--steps", "400")
    assert rate > 0.3  # 0.1 by chance
    assert printed(text, "hit rate") == pytest.approx(rate, abs=1e-3)


@pytest.mark.slow  # the network learns in tests/models
def test_classification(run: Any) -> None:
    accuracy, text = run("classification", "--steps", "150")
    assert accuracy > 0.4  # one of eight
    assert printed(text, "test accuracy") == pytest.approx(accuracy, abs=1e-3)


@pytest.mark.slow  # the network learns in tests/models
def test_segmentation(run: Any) -> None:
    overlap, text = run("segmentation", "--steps", "60")
    assert overlap > 0.5  # below a third where everything is called nothing
    assert printed(text, "pixel accuracy") > 0.85
    assert printed(text, "mean overlap") == pytest.approx(overlap, abs=1e-3)


@pytest.mark.slow  # the network learns in tests/models
def test_gan(run: Any) -> None:
    difference, text = run("gan", "--steps", "100")
    assert difference < 0.15  # 0.25 before training
    assert printed(text, "differs by") == pytest.approx(difference, abs=1e-3)


@pytest.mark.slow  # the network learns in tests/models
def test_vae(run: Any) -> None:
    nats, text = run("vae", "--steps", "150")
    assert nats < 340  # 543 where every pixel is a coin
    assert printed(text, "test:") == pytest.approx(nats, abs=0.1)


def test_functional(run: Any) -> None:
    accuracies, text = run("functional", "--steps", "100")
    assert min(accuracies) > 0.7  # one of two
    assert text.count("test accuracy") == 3


def test_resume(run: Any) -> None:
    (accuracy, difference), text = run("resume", "--steps", "120")
    assert accuracy > 0.8
    assert difference == 0.0
    assert "in two parts" in text


def test_every_program_is_tried() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")} - LIBRARY
    tried = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert names == tried - {"every_program_is_tried"}


def test_graph(run: Any) -> None:
    accuracy, text = run("graph", "--steps", "60")
    assert accuracy > 0.7  # 0.25 by chance
    assert printed(text, "lowest accuracy") == pytest.approx(accuracy, abs=1e-3)


def test_keras_digits(run: Any) -> None:
    accuracy, text = run("keras_digits", "--steps", "40")
    assert accuracy > 0.8
    assert printed(text, "accuracy") == pytest.approx(accuracy, abs=1e-3)


def test_experts(run: Any) -> None:
    (single, experts), text = run("experts", "--steps", "300")
    assert experts < 0.3 < single  # 1 is what a constant would get
    assert printed(text, "error of experts") == pytest.approx(experts, abs=1e-3)
    assert printed(text, "error of one layer") == pytest.approx(single, abs=1e-3)


def test_pipeline(run: Any) -> None:
    accuracy, text = run("pipeline", "--steps", "120")
    assert accuracy > 0.6
    assert printed(text, "test accuracy") == pytest.approx(accuracy, abs=1e-3)
    assert "stopped after 60 steps" in text
    assert "<- slowest" in text
