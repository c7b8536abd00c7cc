"""`python tests/tools/check_typing.py`: type checkers see every public name, and no other.

Pyright checks a user's program in strict mode, with Weft as an installed package: names that a
package imports and does not offer are errors there.
"""

import importlib
import json
import pkgutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import weft

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ABSENT = """import weft as wf
import weft.func as func
import weft.tf1 as tf

wf.no_such_name
wf.nn.no_such_name
wf.sys
tf.no_such_name
tf.math.cast
func.guard
wf.optim.SGD([], lr="fast")
wf.nn.GLU("first")
wf.nn.MaxPool2d(stride=2)
wf.nn.LazyLinear("three")
wf.optim.AdamW([], 1e-3, (0.9, 0.99), 1e-8, 0.1, False, True)
"""
"""Each line after the imports is an error: not there, not for users, or no such argument."""


def errors(program: str) -> dict[int, str]:
    """What Pyright's strict mode says of a program, by line."""
    with tempfile.TemporaryDirectory() as folder:
        packages = Path(folder, "venv/lib/python3.11/site-packages")
        packages.mkdir(parents=True)
        Path(folder, "venv/pyvenv.cfg").write_text(f"home = {sys.base_prefix}\n")
        (packages / "weft").symlink_to(ROOT / "weft")
        (packages / "others.pth").write_text(sysconfig.get_paths()["purelib"])
        config = {"typeCheckingMode": "strict", "venvPath": folder, "venv": "venv"}
        Path(folder, "pyrightconfig.json").write_text(json.dumps(config))
        Path(folder, "program.py").write_text(program)
        command = [sys.executable, "-m", "pyright", "--outputjson", "-p", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    reports = json.loads(done.stdout)["generalDiagnostics"]
    return {
        r["range"]["start"]["line"] + 1: r["message"] for r in reports if r["severity"] == "error"
    }


def every_name() -> str:
    """A program with the public names of each package that has some, a name a line."""
    lines = [f"weft.{name}" for name in dir(weft)]
    for module in pkgutil.walk_packages(weft.__path__, "weft."):
        if module.ispkg:
            names = getattr(importlib.import_module(module.name), "__all__", ())
            lines += [f"{module.name}.{name}" for name in names]
    packages = sorted({line.rpartition(".")[0] for line in lines})
    return "\n".join([*[f"import {package}" for package in packages], *lines])


def main() -> None:
    for program in ((HERE / "typed_program.py").read_text(), every_name()):
        faults = errors(program)
        shown = [f"{program.splitlines()[n - 1]}: {text}" for n, text in faults.items()]
        assert not faults, "\n".join(shown)
    lines = {
        n for n, line in enumerate(ABSENT.splitlines(), 1) if line and "import" not in line[:6]
    }
    assert lines <= errors(ABSENT).keys(), "wrong names or arguments are not errors"


if __name__ == "__main__":
    main()
