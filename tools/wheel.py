"""`python -m tools.wheel`: builds the wheel in `build/wheel`, with a kernel library a target.

Kernels for other processors are compiled, not run, so one machine makes all of them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from weft.codegen.target import PORTABLE
from weft.library.making import listed, made
from weft.runtime.compilation import fingerprint
from weft.runtime.compilation.pack import FOLDER, sealed

LIMIT = 15 << 20  # bytes of the wheel
ROOT = Path(__file__).resolve().parent.parent
FILES = ("pyproject.toml", "README.md", "LICENSE")


def packs(folder: Path) -> None:
    """Writes the packs of all targets."""
    folder.mkdir(parents=True)
    for name, target in PORTABLE.items():
        start = time.monotonic()
        pack = sealed(made(target, listed()), fingerprint.outline())
        (folder / f"{name}.pack").write_bytes(pack)
        print(f"{name}: {len(pack) / 1e6:.1f} MB, {time.monotonic() - start:.0f} s", flush=True)


def main() -> None:
    """Builds it in a copy, so that no checkout has packs that its sources have left behind."""
    build = ROOT / "build" / "wheel"
    shutil.rmtree(build, ignore_errors=True)
    source = build / "source"
    shutil.copytree(ROOT / "weft", source / "weft", ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source)
    packs(source / FOLDER.relative_to(ROOT))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(build)]
    subprocess.run([*command, str(source)], check=True)
    shutil.rmtree(source)
    (wheel,) = build.glob("*.whl")
    size = wheel.stat().st_size
    print(f"{wheel.relative_to(ROOT)}: {size / 1e6:.1f} MB")
    if size > LIMIT:
        sys.exit(f"the wheel is larger than {LIMIT / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
