"""`torch.hub` and `torch.utils.model_zoo`: folders; what would be downloaded is refused."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlparse

from weft.errors import StateError
from weft.serialization import load as load_file

__all__ = [
    "HASH_REGEX", "download_url_to_file", "get_dir", "help", "list", "load",
    "load_state_dict_from_url", "load_url", "set_dir",
]  # fmt: skip

HASH_REGEX: Final = re.compile(r"-([a-f0-9]*)\.")
"""The part of a file's name that has its digest."""
_places: dict[str, str] = {}


def get_dir() -> str:
    """The folder of downloaded files: `$TORCH_HOME/hub`, or `~/.cache/torch/hub`."""
    home = os.environ.get("TORCH_HOME") or Path(
        os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch"
    )
    return _places.get("hub") or str(Path(home, "hub").expanduser())


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder of downloaded files."""
    _places["hub"] = os.path.expanduser(d)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
    check_hash: bool = False, file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """Load a file that has been downloaded before, by the name that PyTorch gives it.

    Raises:
        StateError: there is no such file: Weft downloads nothing.
    """
    del map_location, progress, check_hash, weights_only
    name = file_name or Path(urlparse(url).path).name
    path = Path(model_dir or Path(get_dir(), "checkpoints"), name)
    if not path.exists():
        raise StateError.here(
            f"torch.hub: expected {path}, which is missing: Weft downloads nothing; put the "
            f"file of {url} there"
        )
    return load_file(path)


load_url = load_state_dict_from_url


def _refuse(*arguments: Any, **options: Any) -> Any:
    """Refused: it would run code from the network.

    Raises:
        StateError: always.
    """
    del options
    raise StateError.here(
        f"torch.hub: expected a local package, got {arguments!r}: Weft neither downloads nor runs "
        f"code from the network; install the repository and import it"
    )


download_url_to_file = help = list = load = _refuse
