"""The only user of llvmlite: host facts, LLVM IR text to object code, object code to addresses."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from weft.codegen.half import with_conversions
from weft.errors import CompileError
from weft.host.deferred import Deferred
from weft.host.interrupt import Uninterrupted

if TYPE_CHECKING:
    import llvmlite
    import llvmlite.binding as binding
    import llvmlite.utils as utils
else:
    llvmlite, binding = Deferred("llvmlite"), Deferred("llvmlite.binding")
    utils = Deferred("llvmlite.utils")

OPTIONS: Final = ("-disable-lsr",)
QUICK: Final = "; runs briefly\n"
"""Begins a text whose code runs so briefly that how long it takes to compile counts for more.

Without optimization it takes half of the time.
"""
INLINED: Final = "; calls kernels\n"
"""Begins a text whose functions are to be put where they are called, and simplified there."""
_lock = threading.Lock()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Locks LLVM for one thread, as its contexts are shared, and defers Ctrl-C.

    llvmlite records that it has freed an object after freeing it: if interrupted, it frees twice.
    """
    with Uninterrupted(), _lock:
        yield


def folder() -> str:
    """Where llvmlite is installed, for another interpreter."""
    return os.path.dirname(os.path.dirname(os.path.realpath(str(llvmlite.__file__))))


@functools.cache
def _initialize() -> binding.Target:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple()


@functools.cache
def tune() -> None:
    """Sets LLVM's options for the whole process, so only a process of our own may call it.

    Loop strength reduction takes two fifths of LLVM's time and gains nothing: our loops step by
    constants, and addresses are sums of a few registers. The kernels of ResNet-50 run 1.3% faster
    without it (AVX-512).
    """
    for option in OPTIONS:
        binding.set_option("weft", option)


@_alone()
def host() -> tuple[str, dict[str, bool]]:
    """LLVM's name of this machine's processor, and its features."""
    _initialize()
    return binding.get_host_cpu_name(), dict(binding.get_host_cpu_features())


@functools.cache
def version() -> str:
    """What the machine code depends on: llvmlite, and LLVM by the size of the library with it.

    Loading that, to ask it, takes 40 ms, and most processes compile nothing.
    """
    folder = os.path.dirname(str(llvmlite.__file__))
    library = os.path.join(folder, "binding", utils.get_library_name())
    size = os.stat(library).st_size if os.path.exists(library) else 0
    return f"llvmlite-{llvmlite.__version__} {size} {' '.join(OPTIONS)}"


@functools.cache
def _elsewhere(processor: str) -> binding.Target:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(f"{processor}-unknown-linux-gnu")


@functools.lru_cache(maxsize=8)
def _machine(cpu: str, features: str, quick: bool, processor: str = "") -> binding.TargetMachine:
    here = processor in ("", platform.machine())
    return (_initialize() if here else _elsewhere(processor)).create_target_machine(
        cpu=cpu, features=features, opt=0 if quick else 3, reloc="pic", codemodel="small"
    )


def _module(ir: str) -> binding.ModuleRef:
    try:
        module = binding.parse_assembly(ir)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM rejected a kernel: {error}") from None
    return module


def _prepared(
    ir: str, cpu: str, features: str, machine: binding.TargetMachine
) -> binding.ModuleRef:
    module = _module(with_conversions(ir, cpu, features))
    if ir.startswith(INLINED):
        tuning = binding.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
        builder = binding.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
    return module


@_alone()
def to_object(ir: str, cpu: str, features: str, processor: str = "") -> bytes:
    """Machine code of an LLVM module, as an object file.

    Args:
        processor: as `platform.machine` says it; this machine's if it is empty.

    Raises:
        CompileError: LLVM cannot parse or verify the text.
    """
    machine = _machine(cpu, features, ir.startswith(QUICK), processor)
    return machine.emit_object(_prepared(ir, cpu, features, machine))


@_alone()
def to_assembly(ir: str, cpu: str, features: str) -> str:
    """The module as assembly text, for reading."""
    tune()
    machine = _machine(cpu, features, ir.startswith(QUICK))
    return machine.emit_assembly(_prepared(ir, cpu, features, machine))


class Library:
    """Object files linked into this process; they stay until the library is dropped."""

    @_alone()
    def __init__(self) -> None:
        # One TargetMachine per engine: sharing one crashes the process. JITLink, because it keeps
        # the sections of an object together; LLVM's older linker maps them one by one, and aborts
        # the process if code and its constants end up more than 2 GB apart.
        machine = _initialize().create_target_machine()
        self._jit = binding.create_lljit_compiler(machine, use_jit_link=True)
        self._trackers: list[object] = []
        self._count = 0

    @_alone()
    def link(self, objects: dict[str, bytes]) -> dict[str, int]:
        """Links object files, each named after the one symbol it defines; returns the addresses.

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
