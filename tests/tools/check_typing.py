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
from collections.abc import Mapping
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


def errors(programs: Mapping[str, str]) -> dict[str, dict[int, str]]:
    """What Pyright's strict mode says of programs, by name and line; it reads Weft once for all."""
    with tempfile.TemporaryDirectory() as folder:
        packages = Path(folder, "venv/lib/python3.11/site-packages")
        packages.mkdir(parents=True)
        Path(folder, "venv/pyvenv.cfg").write_text(f"home = {sys.base_prefix}\n")
        (packages / "weft").symlink_to(ROOT / "weft")
        (packages / "others.pth").write_text(sysconfig.get_paths()["purelib"])
        config = {"typeCheckingMode": "strict", "venvPath": folder, "venv": "venv"}
        Path(folder, "pyrightconfig.json").write_text(json.dumps(config))
        for name, program in programs.items():
            Path(folder, f"{name}.py").write_text(program)
        command = [sys.executable, "-m", "pyright", "--outputjson", "-p", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    reports = json.loads(done.stdout)["generalDiagnostics"]
    found: dict[str, dict[int, str]] = {name: {} for name in programs}
    for report in reports:
        if report["severity"] == "error":
            line = report["range"]["start"]["line"] + 1
            found[Path(report["file"]).stem][line] = report["message"]
    return found


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
    right = {"typed": (HERE / "typed_program.py").read_text(), "names": every_name()}
    found = errors({**right, "absent": ABSENT})
    for name, program in right.items():
        shown = [f"{program.splitlines()[n - 1]}: {text}" for n, text in found[name].items()]
        assert not shown, "\n".join(shown)
    lines = {
        n for n, line in enumerate(ABSENT.splitlines(), 1) if line and "import" not in line[:6]
    }
    assert lines <= found["absent"].keys(), "wrong names or arguments are not errors"


if __name__ == "__main__":
    main()
