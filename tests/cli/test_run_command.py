"""`weft run`: a program runs as under Python, with Weft in the place of PyTorch and others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weft.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def weft_run(*arguments, folder):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "weft", "run", *map(str, arguments)],
        cwd=folder, env=env, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "beside.py").write_text("import torch.nn as nn\nNet = nn.Linear\n")
    part = tmp_path / "lightning_utilities" / "core"
    part.mkdir(parents=True)
    (part / "imports.py").write_text("NAME = __name__")
    return tmp_path


PROGRAM = """
import sys, multiprocessing
from importlib.metadata import version
from importlib.util import find_spec
import torch
import torch.nn.utils.weight_norm
from torch.nn.modules.container import Sequential
from torch.utils.data.dataloader import DataLoader
from torch.optim import lr_scheduler
from torch.optim.lr_scheduler import _LRScheduler, StepLR
import lightning.pytorch as pl, pytorch_lightning, torchmetrics, horovod.torch as hvd
from beside import Net
from lightning_utilities.core import imports, rank_zero

class Lit(pl.LightningModule):
    pass

def work(queue):
    import torch
    queue.put((torch.__name__, type(torch).__name__, __name__))

if __name__ == "__main__":
    print(sys.argv, sys.path[0], __file__, __spec__)
    print("installed PyTorch:", any(hasattr(m, "_initExtension") for m in sys.modules.values()))
    print(version("torch"), torch.__version__ >= "2.0", find_spec("torch.foo"))
    print(str(torch.float32), [torch.int8], f"{torch.ones(1).dtype}")
    print(imports.NAME, rank_zero.rank_zero_only.rank)
    print(callable(torch.nn.utils.weight_norm), pl.Trainer is pytorch_lightning.Trainer)
    print(sys.modules["__main__"].Lit is Lit, len(Sequential(Net(2, 1))))
    print(StepLR.__module__ == lr_scheduler.__name__, torch.typename(Net(2, 1)))
    torch.save(Net(2, 1), "net.pt")
    print(b"weft.nn" in open("net.pt", "rb").read(), torch.load("net.pt", weights_only=False))
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
    sys.exit(3)
"""


def test_a_program_runs_as_under_python(folder):
    (folder / "program.py").write_text(PROGRAM)
    done = weft_run("program.py", "--epochs", "2", folder=folder)
    assert done.stdout.splitlines() == [
        f"['program.py', '--epochs', '2'] {folder} program.py None",
        "installed PyTorch: False",
        "2.13.0 True None",
        "torch.float32 [torch.int8] float32",
        "lightning_utilities.core.imports 0",
        "True True",
        "True 1",
        "True torch.nn.Linear",
        "True Linear(in_features=2, out_features=1, bias=True)",
        "('torch', 'Mirror', '__mp_main__')",
    ], done.stderr
    assert done.returncode == 3


def test_a_module_runs_by_its_name(folder):
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import sys, torch\nfrom . import inner\nprint(sys.argv[1:], __package__, inner.ONE.item())"
    )
    (package / "inner.py").write_text("import torch\nONE = torch.ones(())")
    done = weft_run("-m", "package", "x", folder=folder)
    assert done.stdout == "['x'] package 1.0\n", done.stderr
    assert done.returncode == 0


ABSENT = [
    ("torch.jit.fork('x')", "torch.jit.fork: Weft has none: there is no TorchScript"),
    ("from torch.jit import fork", "torch.jit.fork: Weft has none: there is no TorchScript"),
    ("import torch.foo", "torch.foo: Weft has none"),
    ("from torch.foo import bar", "torch.foo: Weft has none"),
    ("torch.ones(1).to('cuda')", "device: expected 'cpu', the only device here, got 'cuda'"),
    ("torch.hub.load('a/b', 'c')", "Weft neither downloads nor runs code from the network"),
    ("torch.distributed.ProcessGroupNCCL()", "torch.distributed.ProcessGroupNCCL: Weft"),
]


def test_what_is_absent_is_told_where_it_is_used(folder):
    (folder / "program.py").write_text(
        f"import torch\nfor text in {[text for text, _ in ABSENT]}:\n"
        "    try:\n        exec(text)\n    except Exception as error:\n        print(error)\n"
        "torch.ones(1).qscheme()"
    )
    done = weft_run("program.py", folder=folder)
    told = done.stdout.splitlines()
    assert len(told) == len(ABSENT), done.stderr
    assert [line for line, (_, text) in zip(told, ABSENT, strict=True) if text not in line] == []
    lines = done.stderr.splitlines()
    assert lines[1] == '  File "program.py", line 7, in <module>' and len(lines) == 6
    assert "torch.Tensor.qscheme: Weft has none" in lines[-1] and done.returncode == 1


IMPORTS = """
import torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook as hook
from torch.ao.quantization import prepare_qat
from lightning.pytorch.callbacks.timer import Callback
from lightning.pytorch.callbacks import Callback as theirs
print(hook.__name__.rpartition(".")[2], isinstance(1, prepare_qat), Callback is theirs)
try:
    from torch.ao.quantization import convert
except ImportError as error:
    print("asked:", error)
with open(__file__):
    from torch.ao.quantization import fuse_modules
try:
    prepare_qat(1)
except NotImplementedError as error:
    print(error)
from torch.nn import Lineer
"""


def test_an_import_of_what_is_not_used_is_given(folder):
    (folder / "program.py").write_text(IMPORTS)
    done = weft_run("program.py", folder=folder)
    given, asked, used = done.stdout.splitlines()
    assert given == "powerSGD_hook False True"
    assert asked.startswith("asked: torch.ao.quantization.convert: Weft has none")
    assert used.startswith("torch.ao.quantization.prepare_qat: Weft has none")
    assert done.stderr.endswith("ImportError: torch.nn.Lineer: Weft has none\n")


def test_of_tensorflow_so_are_modules_that_its_listing_leaves_out(folder):
    (folder / "program.py").write_text(
        "from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops\n"
        "from tensorflow.keras.layers import CuDNNLSTM\n"
        "from tensorflow.python.ops import variable_scope as vs\n"
        "import tensorflow.contrib.gan as tfgan\nprint(vs.variable_scope)\ntfgan.gan_model(1)"
    )
    done = weft_run("program.py", folder=folder)
    assert "variable_scope" in done.stdout
    assert done.stderr.endswith("tensorflow.contrib.gan.gan_model: Weft has none\n")


def test_what_python_refuses_is_told_as_python_tells_it(folder):
    (folder / "program.py").write_text("import torch\nx = 1 +")
    done = weft_run("program.py", folder=folder)
    assert done.stderr.startswith('  File "program.py", line 2') and done.returncode == 1
    (folder / "program.py").write_text("import nosuch")
    done = weft_run("program.py", folder=folder)
    assert done.stderr.splitlines()[-2] == "ModuleNotFoundError: No module named 'nosuch'"
    assert "weft run: nosuch is not installed in" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nosuch.py"], "expected a Python program, got 'nosuch.py': there is no such file"),
        (["."], "expected a Python program, got '.': it is a folder"),
        (["-m", "no.such"], "expected a module that can be run, got 'no.such'"),
        (["--check", "nosuch.py"], "expected a Python program, got 'nosuch.py': there is no such"),
        (["--check", "--with", "nosuch", __file__], "expected an installed package, got 'nosuch'"),
        (["--with", "numpy", "beside.py"], "expected --with beside --check"),
    ],
)
def test_wrong_arguments_are_a_sentence(arguments, text, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["run", *arguments]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"weft run: {text}") and told.count("\n") == 1


def test_packages_for_jax_find_no_tensorflow(folder):
    """They would use both: a program itself may."""
    package = folder / "site-packages" / "asking.py"
    package.parent.mkdir()
    package.write_text("try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\n")
    (folder / "both.py").write_text(
        "import sys; sys.path.append('site-packages')\n"
        "import jax, asking\nassert asking.tf is None\n"
        "import tensorflow; print(tensorflow.Tensor)\n"
    )
    done = weft_run("both.py", folder=folder)
    assert done.returncode == 0 and "Tensor" in done.stdout, done.stderr


def test_importing_it_too_late_is_an_error(folder):
    code = (
        "import sys, types; sys.modules['torch'] = types.ModuleType('torch'); import weft.as_torch"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert "expected to be imported before torch: make it the first line" in done.stderr


def test_a_check_lists_what_is_absent(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "beside.py").write_text("from torch.nn import Foo\n")
    (folder / "program.py").write_text(
        "import torch\nimport beside\n\nx = torch.ones(2)\nx.qscheme()\n"
        "if torch.cuda.is_available():\n    torch.cuda.nothing()\ntorch.jit.fork('x')\n"
    )
    assert main(["run", "--check", "program.py"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": Weft")[0] for line in lines[:-1]] == [
        "program.py:5: torch.Tensor.qscheme",
        "program.py:8: torch.jit.fork",
        f"{folder}/beside.py:1: torch.nn.Foo",
    ]
    assert lines[-1].startswith("3 names that Weft lacks, of ")
    (folder / "program.py").write_text(
        "import torch\ntorch.ones(2).sum()\nprint(torch.nn.__name__, torch.__file__)\n"
    )
    assert main(["run", "--check", "program.py"]) == 0
    (folder / "old.py").write_text("print 'Python 2'\n")
    assert main(["run", "--check", "old.py", "beside.py"]) == 1
    told = capsys.readouterr().out.splitlines()[-3:]
    assert told[0].startswith("run: expected Python, got old.py: ")
    assert told[1].startswith("beside.py:1: torch.nn.Foo")
