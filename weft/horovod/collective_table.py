"""The collectives of Horovod's bindings to three front ends, as one table: names and arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.collectives.reduce_op import ReduceOp
from weft.documentation import named
from weft.horovod.compression import NoneCompressor
from weft.horovod.process_set import global_process_set


class Form(NamedTuple):
    """A public name, and what its collective does with tensors.

    Attributes:
        grouped: takes several tensors and returns a list.
        in_place: overwrites its tensors.
        later: returns a handle at once.
    """

    name: str
    grouped: bool = False
    in_place: bool = False
    later: bool = False


class Argument(NamedTuple):
    """An argument; `text` documents it wherever it is taken."""

    name: str
    annotation: str
    default: Any
    text: str


class Collective(NamedTuple):
    """A collective.

    Attributes:
        summary, details, ending: the docstring before and after its arguments; `{x}` stands for
            what the binding takes, `{y}` for what it returns.
        forms: the binding of PyTorch has all of them; that of TensorFlow has no handles and changes
            nothing in place; that of Keras has no groups either.
        orders: for each binding that has the collective, the arguments after the tensors.
    """

    summary: str
    details: str
    ending: str
    forms: tuple[Form, ...]
    orders: dict[str, tuple[Argument, ...]]


class Binding(NamedTuple):
    """Horovod for one front end.

    Attributes:
        module: where its collectives are defined.
        first: the name of the tensor argument.
        tensor: the type of a tensor.
        result: what the binding calls a result.
    """

    name: str
    module: str
    first: str
    tensor: str
    result: str = "tensor"

    def has(self, form: Form) -> bool:
        """Whether the binding has a form of its collectives."""
        if self is KERAS:
            return not (form.grouped or form.in_place or form.later)
        return self is TORCH or not (form.in_place or form.later)

    def returned(self, form: Form, collective: Collective) -> str:
        """The type of a form's result."""
        if form.later:
            return "int"
        one = "Any" if collective is COLLECTIVES["alltoall"] else self.tensor
        return f"list[{one}]" if form.grouped else one


TORCH: Final = Binding("torch", "weft.horovod.torch.collective", "tensor", "Tensor")
TENSORFLOW: Final = Binding("tensorflow", "weft.horovod.tensorflow.collective", "tensor", "Any")
KERAS: Final = Binding("keras", "weft.horovod.keras.collective", "value", "Any", "array")

_REQUIRED: Final = inspect.Parameter.empty
_NAME: Final = Argument(
    "name", "str | None", None, "of the tensor in the timeline, or of the operation in the graph."
)
_AVERAGE: Final = Argument(
    "average", "bool | None", None, "`False` for a sum, `True` for a mean; or pass `op`."
)
_COMPRESSION: Final = Argument(
    "compression", "type[Compressor]", NoneCompressor,
    "`hvd.Compression.fp16` sends floating-point elements as float16; or a class of\n"
    "your own with `compress` and `decompress`.",
)  # fmt: skip
_OP: Final = Argument(
    "op", "Any", None, "`hvd.Average`, which is the default, `hvd.Sum` or another reduction."
)
_FACTORS: Final = (
    Argument("prescale_factor", "float", 1.0, "factor before the reduction."),
    Argument("postscale_factor", "float", 1.0, "factor after the reduction."),
)
_PROCESS_SET: Final = Argument(
    "process_set", "ProcessSet", global_process_set, "the ranks that take part."
)
_ROOT: Final = Argument("root_rank", "int", _REQUIRED, "the rank in the job that sends.")
_SPLITS: Final = Argument(
    "splits", "Any", None, "the number of rows for each rank; by default equal numbers."
)
_DEVICES: Final = (
    Argument("device_dense", "str", "", "ignored; there is one device."),
    Argument("device_sparse", "str", "", "ignored; there is one device."),
)
_MEAN: Final = _OP._replace(default=ReduceOp.AVG)

COLLECTIVES: Final = {
    "allreduce": Collective(
        "The reduction of all ranks' {x}s, as a new {y}; the mean unless `op` says otherwise.",
        "Means of integers are rounded towards zero. The gradient is the same reduction of the\n"
        "results' gradients, as in Horovod, so all ranks take part in the backward pass. Results\n"
        "of handles have no gradient.",
        "Raises:\n"
        "    ArgumentError: both `op` and `average` are given, or `op` is not a reduction.\n"
        "    DistributedError: ranks make different calls, or one of them failed or ended.",
        (
            Form("allreduce"),
            Form("allreduce_", in_place=True),
            Form("allreduce_async", later=True),
            Form("allreduce_async_", in_place=True, later=True),
            Form("grouped_allreduce", grouped=True),
            Form("grouped_allreduce_", grouped=True, in_place=True),
            Form("grouped_allreduce_async", grouped=True, later=True),
            Form("grouped_allreduce_async_", grouped=True, in_place=True, later=True),
        ),
        {
            "torch": (_AVERAGE, _NAME, _COMPRESSION, _OP, *_FACTORS, _PROCESS_SET),
            "tensorflow": (
                _AVERAGE, *_DEVICES, _COMPRESSION, _OP, *_FACTORS, _NAME, _PROCESS_SET,
            ),
            "keras": (_NAME, _AVERAGE, *_FACTORS, _OP, _COMPRESSION),
        },
    ),
    "reducescatter": Collective(
        "This rank's rows of the reduction, as a new {y}; the mean unless `op` is `hvd.Sum`.",
        "If rows cannot be divided equally, the first ranks get one more. The gradient gathers\n"
        "all ranks' rows, as in Horovod.",
        "Raises:\n"
        "    ArgumentError: `op` is neither a sum nor a mean.\n"
        "    ShapeError: the {x} is a scalar.",
        (
            Form("reducescatter"),
            Form("reducescatter_async", later=True),
            Form("grouped_reducescatter", grouped=True),
            Form("grouped_reducescatter_async", grouped=True, later=True),
        ),
        {
            "torch": (_NAME, _COMPRESSION, _MEAN, _PROCESS_SET, *_FACTORS),
            "tensorflow": (_DEVICES[0], _COMPRESSION, _OP, _NAME, _PROCESS_SET, *_FACTORS),
            "keras": (_NAME, _MEAN),
        },
    ),
    "allgather": Collective(
        "Concatenate all ranks' {x}s along their first dimension, whose length may differ.",
        "The gradient is this rank's rows of the mean of all ranks' gradients, as in Horovod.",
        "Raises:\n    ShapeError: other dimensions or types differ, or they are scalars.",
        (
            Form("allgather"),
            Form("allgather_async", later=True),
            Form("grouped_allgather", grouped=True),
            Form("grouped_allgather_async", grouped=True, later=True),
        ),
        {"torch": (_NAME, _PROCESS_SET), "tensorflow": (_NAME, _PROCESS_SET), "keras": (_NAME,)},
    ),
    "broadcast": Collective(
        "The {x} of one rank, as a new {y}.",
        "The gradient is the mean of all ranks' gradients on that rank, as in Horovod, and zero\n"
        "on the others.",
        "Raises:\n    DistributedError: `root_rank` is not in the process set.",
        (
            Form("broadcast"),
            Form("broadcast_", in_place=True),
            Form("broadcast_async", later=True),
            Form("broadcast_async_", in_place=True, later=True),
        ),
        {
            "torch": (_ROOT, _NAME, _PROCESS_SET),
            "tensorflow": (_ROOT, _NAME, _PROCESS_SET),
            "keras": (_ROOT, _NAME),
        },
    ),
    "alltoall": Collective(
        "The rows that the ranks send to this one, as a new {y}.",
        "The gradient of the rows goes back to where they came from.",
        "Returns:\n"
        "    The rows; with `splits`, a pair of them and the number of rows from each rank.\n\n"
        "Raises:\n"
        "    ShapeError: `splits` does not add up to the rows.",
        (Form("alltoall"), Form("alltoall_async", later=True)),
        {"torch": (_SPLITS, _NAME, _PROCESS_SET), "tensorflow": (_SPLITS, _NAME, _PROCESS_SET)},
    ),
}  # fmt: skip


def functions(binding: Binding, name: str, perform: Callable[..., Any]) -> list[Any]:
    """A binding's functions of a collective, in the order of its forms.

    Args:
        perform: called with the form, a list of tensors, and every other argument by name.
    """
    collective = COLLECTIVES[name]
    return [_function(binding, collective, f, perform) for f in collective.forms if binding.has(f)]


def _function(
    binding: Binding, collective: Collective, form: Form, perform: Callable[..., Any]
) -> Callable[..., Any]:
    first = Argument(
        f"{binding.first}s" if form.grouped else binding.first,
        f"Sequence[{binding.tensor}]" if form.grouped else binding.tensor,
        _REQUIRED, "what this rank contributes.",
    )  # fmt: skip
    uncompressed = form.in_place or form.later  # only a new result can be decompressed
    rest = [a for a in collective.orders[binding.name] if not (uncompressed and a is _COMPRESSION)]
    taken = [first, *rest]
    names, known = [a.name for a in taken], {a.name for a in taken}
    required = {a.name for a in taken if a.default is _REQUIRED}
    defaults = {a.name: a.default for a in taken if a.default is not _REQUIRED}
    signature = inspect.Signature(
        [
            inspect.Parameter(
                a.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=a.default,
                annotation=a.annotation,
            ) for a in taken
        ],
        return_annotation=binding.returned(form, collective),
    )  # fmt: skip

    @named(form.name, _document(binding, collective, form, taken), binding.module)
    def function(*args: Any, **kwargs: Any) -> Any:
        values = dict(zip(names, args, strict=False)) | kwargs
        if len(values) < len(args) + len(kwargs) or not required <= values.keys() <= known:
            signature.bind(*args, **kwargs)  # raises a TypeError that says what is wrong
        tensors = values.pop(first.name)
        return perform(form, tensors if form.grouped else [tensors], **(defaults | values))

    vars(function)["__signature__"] = signature
    return function


def _document(binding: Binding, collective: Collective, form: Form, taken: list[Argument]) -> str:
    """A form's docstring: what it does, its arguments, and for the plain form all else."""
    texts = [f"    {a.name}: " + a.text.replace("\n", "\n        ") for a in taken]
    arguments = "\n".join(["Args:", *texts])
    plain = collective.forms[0]
    if form.name == plain.name:
        texts = [collective.summary, collective.details, arguments, collective.ending]
        return "\n\n".join(texts).format(x=binding.first, y=binding.result)
    if form.later:
        when = (
            "the tensor changes in `synchronize`"
            if form.in_place
            else "returns a handle for `poll` and `synchronize`"
        )
        at_once = _name(collective, form._replace(later=False))
        return f"Asynchronous `{at_once}`; {when}.\n\n{arguments}"
    if form.in_place:
        return f"`{_name(collective, form._replace(in_place=False))}` in place.\n\n{arguments}"
    together = "; those of one type are sent as one vector" if plain.name == "allreduce" else ""
    return f"`{plain.name}` of several tensors{together}.\n\n{arguments}"


def _name(collective: Collective, like: Form) -> str:
    """The name of the form that is so grouped, in place and later."""
    return next(form.name for form in collective.forms if form[1:] == like[1:])
