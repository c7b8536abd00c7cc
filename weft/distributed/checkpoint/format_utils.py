"""Conversion of checkpoints of several ranks to one file, and back."""

from __future__ import annotations

from weft.distributed.checkpoint.filesystem import FileSystemReader, Where, checkpoint_at, folder_of
from weft.distributed.checkpoint.state_dict_saver import save
from weft.eager.tensor.interchange.serialization import tensor_of
from weft.formats.checkpoint_folder.state import read_state
from weft.serialization import load as load_file
from weft.serialization import save as save_file


def dcp_to_torch_save(dcp_checkpoint_dir: Where, torch_save_path: Where) -> None:
    """Write the state in a checkpoint's folder to one file, which `weft.load` reads.

    The file is a safetensors file, not pickle. One process calls this.

    Args:
        dcp_checkpoint_dir: the folder of the checkpoint.
        torch_save_path: the file.

    Raises:
        DataError: there is no checkpoint, or it is damaged.
        OSError: the file cannot be written.

    Example:
        >>> import tempfile, weft as wf, weft.distributed.checkpoint as dcp
        >>> from weft.distributed.checkpoint.format_utils import dcp_to_torch_save
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"x": wf.ones(2)}, checkpoint_id=folder)
        ...     dcp_to_torch_save(folder, folder + "/all.safetensors")
        ...     wf.load(folder + "/all.safetensors")
        {'x': tensor([1., 1.])}
    """
    folder = folder_of("dcp_to_torch_save", dcp_checkpoint_dir, None, FileSystemReader)
    where, manifest = checkpoint_at(folder)
    save_file(read_state(where, manifest, tensor_of), torch_save_path)


def torch_save_to_dcp(torch_save_path: Where, dcp_checkpoint_dir: Where) -> None:
    """Write the dict in a file of `weft.save` or `torch.save` to a folder, which `load` reads.

    Pickle in the file is parsed as data and never run. One process calls this.

    Args:
        torch_save_path: the file.
        dcp_checkpoint_dir: the folder of the new checkpoint.

    Raises:
        DataError: the file is damaged, or contains other objects.
        CheckpointException: the folder cannot be written.

    Example:
        >>> import tempfile, weft as wf, weft.distributed.checkpoint as dcp
        >>> from weft.distributed.checkpoint.format_utils import torch_save_to_dcp
        >>> x = wf.zeros(2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     wf.save({"x": wf.ones(2)}, folder + "/all.safetensors")
        ...     torch_save_to_dcp(folder + "/all.safetensors", folder + "/checkpoint")
        ...     dcp.load({"x": x}, checkpoint_id=folder + "/checkpoint")
        >>> x.tolist()
        [1.0, 1.0]
    """
    save(load_file(torch_save_path), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
