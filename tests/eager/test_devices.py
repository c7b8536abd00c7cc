"""What PyTorch programs ask and set before they begin, compared with PyTorch without a device."""

import importlib

import pytest

import weft as wf
from weft.errors import ArgumentError, ConfigError


def test_programs_choose_the_cpu():
    device = wf.device("cuda" if wf.cuda.is_available() else "cpu")
    assert wf.ones(2).to(device).device == device
    assert not wf.accelerator.is_available() and wf.accelerator.current_accelerator() is None
    assert wf.accelerator.device_count() == wf.cuda.device_count() == 0
    assert not wf.backends.mps.is_available() and not wf.backends.cuda.is_built()
    with wf.device("cpu") as device:
        assert wf.ones(2).device == device
    wf.cuda.manual_seed_all(1)
    wf.cuda.empty_cache()


def test_what_is_switched_off_does_nothing():
    for scaler in (wf.cuda.amp.GradScaler(enabled=False), wf.amp.GradScaler("cuda", enabled=False)):
        assert not scaler.is_enabled() and scaler.state_dict() == {}
    with wf.autocast("cpu"), wf.autocast("cuda", enabled=False):
        assert (wf.ones(2, 2) @ wf.ones(2, 2)).dtype == wf.bfloat16
    for make in (wf.cuda.amp.GradScaler, lambda: wf.amp.GradScaler("mps")):
        with pytest.warns(UserWarning, match="there is no device '(cuda|mps)'"):
            assert not make().is_enabled()
    for make in (wf.cuda.amp.autocast, lambda: wf.autocast("cuda", wf.float16)):
        with pytest.warns(UserWarning, match="autocast: there is no device 'cuda'"):
            inside = make()
        with inside:
            assert (wf.ones(2, 2) @ wf.ones(2, 2)).dtype == wf.float32
    assert wf.cuda.max_memory_allocated() == 0 and wf.cuda.get_rng_state_all() == []


def test_moving_to_a_device_says_what_to_write():
    for move in (wf.ones(2).cuda, wf.nn.Linear(1, 1).cuda):
        with pytest.raises(
            ConfigError, match=r"\.cuda: there is no CUDA device; leave the call out"
        ):
            move()
    absent = wf.device("cuda")  # a name, as in PyTorch without a device, until it is used
    assert absent != wf.device("cpu") and str(wf.device("cuda", 1)) == "cuda:1"
    for use in (wf.ones(2).to, lambda place: wf.ones(2, device=place)):
        with pytest.raises(ConfigError, match=r"choose by device\('cuda' if weft.cuda.is_avail"):
            use(absent)


def test_flags_of_other_libraries_can_be_set():
    cudnn = importlib.import_module("weft.backends.cudnn")
    before = cudnn.benchmark
    wf.backends.cudnn.benchmark = True
    assert cudnn.benchmark
    cudnn.benchmark = before
    wf.backends.cuda.matmul.allow_tf32 = True
    wf.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize("name", ["cuda.set_device", "accelerator.synchronize"])
def test_what_needs_a_device_says_that_there_is_none(name):
    module, attribute = name.split(".")
    with pytest.raises(AttributeError, match=rf"weft\.{name}: there is .*is_available\(\) first"):
        getattr(getattr(wf, module), attribute)


@pytest.mark.parametrize("move", [wf.ones(2).to, wf.nn.Linear(1, 1).to, wf.set_default_device])
@pytest.mark.parametrize("device", [0, "cuda", "cuda:1", "cpu:x", "cpu:"])
def test_other_devices_are_refused(move, device):
    with pytest.raises(ConfigError, match=f"expected 'cpu', the only device here, got {device!r}"):
        move(device)


def test_threads():
    before = wf.get_num_threads()
    try:
        wf.set_num_threads(1)
        assert wf.get_num_threads() == wf.config.get("threads") == 1
    finally:
        wf.set_num_threads(before)
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ArgumentError, match="set_num_threads: expected a positive integer"):
            wf.set_num_threads(wrong)


def test_matmuls_are_of_the_highest_precision():
    wf.set_float32_matmul_precision("high")
    assert wf.get_float32_matmul_precision() == "highest"
    with pytest.raises(ArgumentError, match="expected one of highest, high, medium, got 'low'"):
        wf.set_float32_matmul_precision("low")
    wf.set_default_device("cpu")
    assert wf.get_default_device() == wf.device("cpu")
