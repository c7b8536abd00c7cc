"""The only door to llvmlite: host facts, LLVM IR text to object code, object code to addresses."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import llvmlite
import llvmlite.binding as binding

from weft.codegen.half import with_conversions
from weft.errors import CompileError
from weft.interrupt import Uninterrupted

FOLDER: Final = Path(llvmlite.__file__).resolve().parent.parent
"""Where llvmlite is installed: another interpreter finds it there."""
OPTIONS: Final = ("-disable-lsr",)
_lock = threading.Lock()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """LLVM for one thread at a time, as its contexts are shared, and without Ctrl-C inside.

    llvmlite notes that it has freed an object after it has: cut off between, it frees it again.
    """
    with Uninterrupted(), _lock:
        yield


@functools.cache
def _initialize() -> binding.Target:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple()


@functools.cache
def tune() -> None:
    """Set LLVM's options for the whole process, so only where nobody else uses it.

    Loop strength reduction takes two fifths of LLVM's time and wins nothing: our loops step by
    constants, and addresses are sums of a few registers. Over the kernels of ResNet-50 code is
    1.3% faster without it (AVX-512).
    """
    for option in OPTIONS:
        binding.set_option("weft", option)


@_alone()
def host() -> tuple[str, dict[str, bool]]:
    """LLVM's name of this machine's processor, and its features."""
    _initialize()
    return binding.get_host_cpu_name(), dict(binding.get_host_cpu_features())


def version() -> str:
    """Versions that the machine code depends on."""
    release = ".".join(map(str, binding.llvm_version_info))
    return f"llvmlite-{llvmlite.__version__} llvm-{release} {' '.join(OPTIONS)}"


@functools.lru_cache(maxsize=8)
def _machine(cpu: str, features: str) -> binding.TargetMachine:
    return _initialize().create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small"
    )


def _module(ir: str) -> binding.ModuleRef:
    try:
        module = binding.parse_assembly(ir)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refused a kernel: {error}") from None
    return module


@_alone()
def to_object(ir: str, cpu: str, features: str) -> bytes:
    """Machine code of an LLVM module, as an object file.

    Raises:
        CompileError: LLVM cannot parse or verify the text.
    """
    return _machine(cpu, features).emit_object(_module(with_conversions(ir, cpu, features)))


@_alone()
def to_assembly(ir: str, cpu: str, features: str) -> str:
    """The module as assembly text, for people."""
    tune()
    return _machine(cpu, features).emit_assembly(_module(with_conversions(ir, cpu, features)))


class Library:
    """Object files linked into this process; they stay until the library is dropped."""

    @_alone()
    def __init__(self) -> None:
        # One TargetMachine per engine: sharing one crashes the process. JITLink, because it keeps
        # the sections of an object together; LLVM's older linker maps them one by one, and aborts
        # the process where code and its constants come to lie more than 2 GB apart.
        machine = _initialize().create_target_machine()
        self._jit = binding.create_lljit_compiler(machine, use_jit_link=True)
        self._trackers: list[object] = []
        self._count = 0

    @_alone()
    def link(self, objects: dict[str, bytes]) -> dict[str, int]:
        """Link object files, each under the name of the one symbol it defines; give the addresses.

        Raises:
            CompileError: an object is damaged or lacks its symbol.
        """
        builder = binding.JITLibraryBuilder()
        for symbol, code in objects.items():
            builder.add_object_img(code)
            builder.export_symbol(symbol)
        builder.add_current_process()
        self._count += 1
        try:
            tracker = builder.link(self._jit, f"weft{self._count}")
        except RuntimeError as error:
            raise CompileError(f"cannot link kernels: {error}") from None
        self._trackers.append(tracker)
        return {symbol: tracker[symbol] for symbol in objects}
