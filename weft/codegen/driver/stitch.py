"""Writes a list of library kernels for given sizes as a program: its calls and their arguments."""

from __future__ import annotations

from weft.codegen.driver.formula import choose, compare, evaluate
from weft.codegen.driver.layout import Unit
from weft.codegen.driver.list_layout import (
    DONE,
    NO_CASE,
    NO_ROOM,
    NO_VARIANT,
    OTHER_LAYOUT,
    PIECE,
    WHOLE,
    Case,
    Choice,
    Chosen,
    Formula,
    Host,
    Launch,
    List,
    Origin,
    Output,
    Pair,
    Part,
    Step,
    Variant,
    Workspace,
)
from weft.codegen.driver.system import copy
from weft.codegen.procedure import CACHE_LINE, Procedure, Ref, Word, i64, pointer, routine, u32


def _aligned(size: Word) -> Word:
    return (size + (CACHE_LINE - 1)) & -CACHE_LINE


@routine(List, Workspace, pointer, pointer, result=i64)
def stitch(f: Procedure, program: Ref, w: Ref, sizes: Word, addresses: Word) -> Word:
    """Fills the workspace: `addresses` are those of the given values.

    Returns:
        `DONE`, or why it is not.
    """
    for name in ("free_count", "top", "launch_count", "slot_count", "host_count", "needed"):
        w[name] = 0
    w["unlinked"], w["total"] = 0, 0
    given, places = program["given"].to(i64), program["places"].to(i64)
    with f.count(program["given_count"]) as i:
        places.at(given.at(i).load()).store(addresses.to(i64).at(i).load())
    steps = program["steps"].to(Step)
    with f.count(program["step_count"]) as i:
        w["step"] = i
        state = _step(f, program, w, steps.at(i), sizes)
        with f.when(state.differs(DONE)):
            f.give(state)
    return f.select(w["needed"] > w["memory"], NO_ROOM, DONE)


@routine(List, Workspace, Step, pointer, result=i64)
def _step(f: Procedure, program: Ref, w: Ref, step: Ref, sizes: Word) -> int:
    """Writes the launches of a step."""
    with f.when(step["call"].is_null()):
        f.give(_divide(f, program, w, step, sizes))
    own = sizes.to(i64).at(step["first"])
    found = f.local(choose(f, step["call"].to(Choice), own))
    with f.when(found.is_null()):
        f.give(NO_CASE)
    layout = step["layout"]
    with f.when(found.to(Chosen)["item"].to(Case)["layout"].differs(layout)):
        found.set(_of_layout(f, step["call"].to(Choice), own, found.to(Chosen), layout))
        with f.when(found.is_null()):
            f.give(OTHER_LAYOUT)
    chosen = found.to(Chosen)
    case = chosen["item"].to(Case)
    w["case"] = case
    places = program["places"].to(i64)
    buffers, count = w["buffers"].to(i64), f.local(0)
    inputs = step["inputs"].to(i64)
    with f.count(step["input_count"]) as i:
        value = inputs.at(i).load()
        buffers.at(i).store(0)
        with f.when(value.differs(-1)):
            buffers.at(i).store(places.at(value).load())
    count.set(count + step["input_count"])
    outputs = step["outputs"].to(Output)
    with f.count(step["output_count"]) as i:
        buffers.at(count).store(_place(f, program, w, outputs.at(i), sizes, case["constants"]))
        count.set(count + 1)
    constants = case["constants"].to(i64)
    with f.count(case["constant_count"]) as i:
        buffers.at(count).store(constants.at(i).load())
        count.set(count + 1)
    w["scratch"] = w["top"]
    temporaries, values = case["temporaries"].to(i64), chosen["values"].to(i64)
    with f.count(case["temporary_count"]) as i:
        buffers.at(count).store(_scratch(f, w, values.at(temporaries.at(i).load()).load()))
        count.set(count + 1)
    parts = case["parts"].to(Part)
    with f.count(case["part_count"]) as i:
        w["part"] = i
        state = _part(f, w, parts.at(i), chosen["values"])
        with f.when(state.differs(DONE)):
            f.give(state)
    _bury(f, program, w, step)
    return DONE


@routine(Choice, pointer, Chosen, i64, result=pointer)
def _of_layout(f: Procedure, call: Ref, sizes: Word, chosen: Ref, layout: Word) -> Word:
    """What is chosen if the case must have a layout; null if there is none."""
    cases = call["items"].to(pointer)
    with f.count(call["count"]) as i:
        case = cases.at(i).load().to(Case)
        with f.when(case["layout"].equals(layout)):
            holds = evaluate(f, case["formula"].to(Formula), sizes, chosen["values"])
            with f.when(holds.differs(0)):
                chosen["item"] = case
                f.give(chosen)
    chosen["item"] = f.null()
    return f.null()


@routine(List, Workspace, Output, pointer, pointer, result=i64)
def _place(f: Procedure, program: Ref, w: Ref, output: Ref, sizes: Word, constants: Word) -> Word:
    """The address of a result, which gets memory if it needs some of its own."""
    places = program["places"].to(i64)
    place = f.local(places.at(output["value"]).load())
    with f.when(output["given"].differs(0)):
        f.give(place)
    with f.when(output["root"].differs(-1)):
        place.set(places.at(output["root"]).load())
    with f.when(output["constant"].differs(-1)):
        place.set(constants.to(i64).at(output["constant"]).load())
    with f.when((output["root"] & output["constant"]).equals(-1)):
        size = _aligned(_size(f, output, sizes))
        program["bytes"].to(i64).at(output["value"]).store(size)
        place.set(_room(f, w, size) + w["base"])
    places.at(output["value"]).store(place)
    return place


def _size(f: Procedure, output: Ref, sizes: Word) -> Word:
    """How many bytes a result has."""
    size = f.local(output["item"])
    with f.count(output["rank"]) as i:
        size.set(size * sizes.to(i64).at(output["first"] + i).load())
    return size


@routine(List, Workspace, Step, pointer, result=i64)
def _divide(f: Procedure, program: Ref, w: Ref, step: Ref, sizes: Word) -> int:
    """Divides memory among values, and writes the launches that copy others to it."""
    outputs, places = step["outputs"].to(Output), program["places"].to(i64)
    inputs = step["inputs"].to(i64)
    place = f.local(_place(f, program, w, outputs.at(0), sizes, w["sizes"]))
    with f.count(step["output_count"] - 1) as i:
        part = outputs.at(i + 1)
        size = f.local(_size(f, part, sizes))
        places.at(part["value"]).store(place)
        with f.when(step["input_count"].differs(0) & size.differs(0)):
            source = places.at(inputs.at(i).load()).load()
            state = _write_copy(f, w, place, source, size)
            with f.when(state.differs(DONE)):
                f.give(state)
        place.set(place + size)
    _bury(f, program, w, step)
    return DONE


@routine(Workspace, i64, i64, i64, result=i64)
def _write_copy(f: Procedure, w: Ref, to: Word, source: Word, size: Word) -> int:
    """Writes a launch that copies bytes."""
    number, first = w["launch_count"], w["slot_count"]
    with f.when((number >= w["launch_room"]) | (first + 3 > w["slot_room"])):
        f.give(NO_ROOM)
    w["launch_count"], w["slot_count"] = number + 1, first + 3
    slots = w["slots"].to(i64).at(first)
    slots.at(0).store(to)
    slots.at(1).store(source)
    slots.at(2).store(size)
    call = w["calls"].to(Unit).at(number)
    call["function"], call["args"] = copy_pieces.at(f), slots
    call["begin"], call["end"] = 0, ((size + (PIECE - 1)) // PIECE).short()
    call["flags"], call["position"] = 0, 0
    w["ticks"].to(i64).at(number).store(size)  # 16 bytes in a nanosecond
    w["total"] = w["total"] + size
    origin = w["origins"].to(Origin).at(number)
    origin["step"], origin["part"] = w["step"], 0
    origin["case"], origin["variant"] = f.null(), f.null()
    return DONE


@routine(pointer, u32, u32, i64)
def copy_pieces(f: Procedure, slots: Word, begin: Word, end: Word, thread: Word) -> None:
    """Copies pieces, as kernels do their chunks."""
    del thread
    size, first, last = slots.to(i64).at(2).load(), begin.wide() * PIECE, end.wide() * PIECE
    to, source = (
        Word(f, f.offset(slots.to(pointer).at(i).load().reg, first.reg)) for i in range(2)
    )
    copy(f, to, source, f.select(last < size, last, size) - first)


@routine(Workspace, i64, result=i64)
def _room(f: Procedure, w: Ref, size: Word) -> Word:
    """Where so many bytes are free: memory of that size that is used no more, or behind all."""
    free, count = w["free"].to(Pair), w["free_count"]
    with f.count(count) as i, f.when(free.at(i)["place"].equals(size)):
        offset = free.at(i)["index"]
        last = free.at(count - 1)
        free.at(i)["place"], free.at(i)["index"] = last["place"], last["index"]
        w["free_count"] = count - 1
        f.give(offset)
    top = w["top"]
    w["top"] = top + size
    _need(f, w, top + size)
    return top


def _need(f: Procedure, w: Ref, size: Word) -> None:
    with f.when(size > w["needed"]):
        w["needed"] = size


def _scratch(f: Procedure, w: Ref, size: Word) -> Word:
    """The address of memory that is used during this step only."""
    offset = w["scratch"]
    w["scratch"] = offset + _aligned(size)
    _need(f, w, w["scratch"])
    return offset + w["base"]


def _bury(f: Procedure, program: Ref, w: Ref, step: Ref) -> None:
    """Frees memory of what is not read any more."""
    dead, free = step["dead"].to(i64), w["free"].to(Pair)
    with f.count(step["dead_count"]) as i:
        value = dead.at(i).load()
        size = program["bytes"].to(i64).at(value).load()
        with f.when(size.differs(0)):
            slot = free.at(w["free_count"])
            slot["place"] = size
            slot["index"] = program["places"].to(i64).at(value).load() - w["base"]
            w["free_count"] = w["free_count"] + 1


@routine(Workspace, Part, pointer, result=i64)
def _part(f: Procedure, w: Ref, part: Ref, given: Word) -> int:
    """Writes the launches of a part, given the values of the case."""
    own, buffers, read = w["own"].to(i64), w["buffers"].to(i64), part["buffers"].to(i64)
    count = f.local(part["buffer_count"])
    with f.count(count) as i:
        number = read.at(i).load()
        own.at(i).store(0)
        with f.when(number.differs(-1)):
            own.at(i).store(buffers.at(number).load())
    with f.when(part["entry"].is_null()):
        f.give(_host(f, w, count))
    sizes, values, which = w["sizes"].to(i64), given.to(i64), part["sizes"].to(i64)
    with f.count(part["size_count"]) as i:
        sizes.at(i).store(values.at(which.at(i).load()).load())
    found = choose(f, part["entry"].to(Choice), w["sizes"])
    with f.when(found.is_null()):
        f.give(NO_VARIANT)
    chosen = found.to(Chosen)
    variant = chosen["item"].to(Variant)
    numbers, scratch = chosen["values"].to(i64), variant["scratch"].to(Pair)
    with f.count(variant["scratch_count"]) as i:
        size = _aligned(numbers.at(scratch.at(i)["index"]).load())
        times = f.select(scratch.at(i)["place"].equals(0), 1, w["threads"])
        own.at(count).store(_scratch(f, w, size * times))
        count.set(count + 1)
    launches = variant["launches"].to(Launch)
    with f.count(variant["launch_count"]) as i:
        state = _launch(f, w, launches.at(i), chosen)
        with f.when(state.differs(DONE)):
            f.give(state)
    return DONE


@routine(Workspace, i64, result=i64)
def _host(f: Procedure, w: Ref, count: Word) -> int:
    """Notes a call of Python on so many buffers."""
    number, first = w["host_count"], w["slot_count"]
    with f.when((number >= w["launch_room"]) | (first + count > w["slot_room"])):
        f.give(NO_ROOM)
    w["host_count"] = number + 1
    w["slot_count"] = first + count
    host = w["hosts"].to(Host).at(number)
    host["launch"], host["slot"] = w["launch_count"], first
    host["step"], host["part"], host["case"] = w["step"], w["part"], w["case"]
    with f.count(count) as i:
        w["slots"].to(i64).at(first + i).store(w["own"].to(i64).at(i).load())
    return DONE


@routine(Workspace, Launch, Chosen, result=i64)
def _launch(f: Procedure, w: Ref, launch: Ref, chosen: Ref) -> int:
    """Writes a launch of the variant chosen, unless it has nothing to do."""
    numbers = chosen["values"].to(i64)
    chunks = numbers.at(launch["chunks"]).load()
    with f.when(compare(chunks, "slt", 1)):
        f.give(DONE)
    number, first = w["launch_count"], w["slot_count"]
    with f.when((number >= w["launch_room"]) | (first + launch["slot_count"] > w["slot_room"])):
        f.give(NO_ROOM)
    w["launch_count"] = number + 1
    w["slot_count"] = first + launch["slot_count"]
    address = launch["address"].to(pointer).load()
    with f.when(address.is_null()):
        w["unlinked"] = w["unlinked"] + 1
    slots = w["slots"].to(i64).at(first)
    call = w["calls"].to(Unit).at(number)
    call["function"], call["args"] = address, slots
    call["begin"], call["end"], call["flags"], call["position"] = 0, chunks.short(), 0, 0
    ticks = numbers.at(launch["work"]).load() * launch["share"] // WHOLE
    w["ticks"].to(i64).at(number).store(ticks)
    w["total"] = w["total"] + ticks
    origin = w["origins"].to(Origin).at(number)
    origin["step"], origin["part"] = w["step"], w["part"]
    origin["case"], origin["variant"] = w["case"], chosen["item"]
    template = launch["slots"].to(i64)
    with f.count(launch["slot_count"]) as i:
        slots.at(i).store(template.at(i).load())
    pairs = launch["numbers"].to(Pair)
    with f.count(launch["number_count"]) as i:
        slots.at(pairs.at(i)["place"]).store(numbers.at(pairs.at(i)["index"]).load())
    pairs, own = launch["buffers"].to(Pair), w["own"].to(i64)
    with f.count(launch["buffer_count"]) as i:
        slots.at(pairs.at(i)["place"]).store(own.at(pairs.at(i)["index"]).load())
    with f.when(launch["error"].differs(-1)):
        slots.at(launch["error"]).store(w["error"].number())
        slots.at(launch["error"] + 1).store(number)
    return DONE
