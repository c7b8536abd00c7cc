"""No public function accepts an argument and ignores it, except for the reasons given here."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from weft.host.garbage_collection import uncollected

ROOT = Path(__file__).parents[1] / "weft"
INNER = ["codegen", "ir", "ops", "passes", "runtime", "transform", "transport"]
ELSEWHERE = ["collectives", "distributed", "horovod", "tf1", "train"]  # with tables of their own

ALWAYS = "the result is as with it anyway"
HINT = "a hint for speed or memory, which changes no value"
ONE_KIND = "there is one device, and one kind of memory"
JAXS_COMPILER = "it tells JAX's compiler what Weft finds out by running"
NO_DISPATCH = "functions of the program run as they are: there is no registry"
ON_TASKS = "variables are those of the tasks, not of the session"
JAX = "JAX's: about other devices, memory, precision, speed or files that are compiled"
PROTOCOL = "subclasses and callers of PyTorch's protocol have it"
EXCEPTIONS = {
    "accelerator.py:current_accelerator(check_available)": ONE_KIND,
    "mirror/finder.py:Finder.find_spec(target)": "Python's signature of finders",
    "eager/functions/override.py:disabled(types)": PROTOCOL,
    "mirror/supplied/compiler.py:substitute_in_graph(options)": NO_DISPATCH,
    "mirror/supplied/compiler.py:substitute_in_graph(original)": NO_DISPATCH,
    **{
        f"mirror/supplied/fx/interpreter.py:Interpreter.{name}": PROTOCOL
        for name in (
            "get_attr(args)",
            "get_attr(kwargs)",
            "output(kwargs)",
            "output(target)",
            "placeholder(kwargs)",
        )
    },
    "mirror/supplied/fx/tracer.py:Tracer.is_leaf_module(module_qualified_name)": PROTOCOL,
    "mirror/supplied/hub.py:load_state_dict_from_url(check_hash)": "it raises",
    "mirror/supplied/hub.py:load_state_dict_from_url(map_location)": "it raises",
    "mirror/supplied/hub.py:load_state_dict_from_url(progress)": "it raises",
    "mirror/supplied/hub.py:load_state_dict_from_url(weights_only)": "it raises",
    "mirror/supplied/jax_inside.py:get_opaque_trace_state(convention)": "a name for messages",
    "mirror/supplied/jax_primitive.py:lower_fun(multiple_results)": JAXS_COMPILER,
    "mirror/supplied/jax_primitive.py:register_lowering(platform)": JAXS_COMPILER,
    "mirror/supplied/jax_primitive.py:register_lowering(prim)": JAXS_COMPILER,
    "mirror/supplied/operators.py:Library.__init__(arguments)": NO_DISPATCH,
    "mirror/supplied/operators.py:Library.__init__(options)": NO_DISPATCH,
    "mirror/supplied/operators.py:custom_op(options)": NO_DISPATCH,
    "mirror/supplied/operators.py:impl(qualname)": NO_DISPATCH,
    "mirror/supplied/operators.py:impl(types)": NO_DISPATCH,
    "mirror/supplied/operators.py:register_fake(op)": NO_DISPATCH,
    **{
        f"mirror/supplied/profiler.py:{name}": "what is not recorded changes no program"
        for name in (
            "EventList.table(options)",
            "profile.__init__(activities)",
            "profile.__init__(options)",
            "profile.key_averages(more)",
            "profile.key_averages(options)",
            "schedule(options)",
        )
    },
    "eager/functions/sparse/construct.py:sparse_coo_tensor(check_invariants)": ALWAYS,
    "eager/functions/sparse/construct.py:sparse_csr_tensor(check_invariants)": ALWAYS,
    "nn/module/module.py:Module.compile(args)": "what runs repeatedly is compiled anyway",
    "nn/module/module.py:Module.compile(kwargs)": "what runs repeatedly is compiled anyway",
    "mirror/supplied/pytree.py:register_pytree_node(options)": "nothing is serialized",
    **{
        f"mirror/supplied/same.py:{name}({argument})": "what it answers for takes any"
        for name in ("given", "no", "nothing", "same")
        for argument in ("arguments", "options")
    },
    "mirror/supplied/same.py:second(kind)": "what it answers for takes any",
    "autograd/functional.py:hessian(vectorize)": ALWAYS,
    "autograd/gradient.py:grad(only_inputs)": "PyTorch's, deprecated and always true",
    "cluster/remote_function.py:RemoteFunction.__call__(state)": ON_TASKS,
    "cluster/remote_function.py:RemoteFunction.explain(state)": ON_TASKS,
    "cluster/resolver/slurm.py:SlurmClusterResolver.__init__(auto_set_gpu)": ONE_KIND,
    "cuda/__init__.py:is_bf16_supported(including_emulation)": "there is no such device",
    "cuda/__init__.py:manual_seed_all(seed)": "there is no such device",
    "cuda/__init__.py:memory_allocated(device)": "there is no such device",
    "eager/functions/compilation.py:compile(options)": "what runs repeatedly is compiled anyway",
    "eager/functions/elementwise/complex_number.py:is_conj(x)": "no tensor has such a bit",
    "eager/functions/elementwise/complex_number.py:is_neg(x)": "no tensor has such a bit",
    "eager/functions/elementwise/inplace.py:Methods.copy_(non_blocking)": HINT,
    "eager/functions/indexing/gather.py:gather(sparse_grad)": HINT,
    "eager/functions/linalg/factorization.py:ldl_factor_ex(check_errors)": "factors always exist",
    "eager/functions/random/generator.py:fork_rng(devices)": ONE_KIND,
    "eager/functions/sort/counting.py:isin(assume_unique)": HINT,
    "eager/functions/sort/counting.py:unique(sorted)": ALWAYS,
    "eager/functions/sort/order.py:sort(stable)": ALWAYS,
    "eager/functions/sort/order.py:topk(sorted)": ALWAYS,
    "eager/record/pending/determinism.py:use_deterministic_algorithms(warn_only)": "no warnings",
    "eager/record/pending/mode.py:autocast(cache_enabled)": ALWAYS,
    "eager/tensor/attribute.py:Attributes.to(non_blocking)": HINT,
    "eager/tensor/attribute.py:Attributes.cuda(device)": "it raises",
    "eager/tensor/attribute.py:Attributes.cuda(memory_format)": "it raises",
    "eager/tensor/attribute.py:Attributes.cuda(non_blocking)": "it raises",
    "eager/tensor/autograd/custom_function.py:Function.__call__(args)": "it raises",
    "eager/tensor/autograd/custom_function.py:Function.__call__(kwargs)": "it raises",
    "func/control/loop.py:fori_loop(unroll)": HINT,
    "func/control/loop.py:scan(unroll)": HINT,
    "nn/functional/softmax.py:gumbel_softmax(eps)": "PyTorch's, deprecated and without effect",
    "nn/functional/embedding.py:embedding(sparse)": HINT,
    "nn/functional/embedding.py:embedding_bag(sparse)": HINT,
    "nn/layer/linear.py:Identity.__init__(args)": "it takes any, as in PyTorch",
    "nn/layer/linear.py:Identity.__init__(kwargs)": "it takes any, as in PyTorch",
    "nn/layer/transformer.py:TransformerEncoder.__init__(enable_nested_tensor)": HINT,
    "nn/layer/transformer.py:TransformerEncoder.__init__(mask_check)": HINT,
    "nn/module/module.py:Module.cuda(device)": "it raises",
    "nn/module/module.py:Module.to_empty(recurse)": ONE_KIND,
    "nn/utils/prune.py:BasePruningMethod.__call__(inputs)": "a forward hook's signature",
    "numpy/searching.py:argsort(stable)": ALWAYS,
    "numpy/searching.py:sort(stable)": ALWAYS,
    "pipeline/transformable.py:Transformable.interleave(deterministic)": ALWAYS,
    "serialization.py:load(map_location)": ONE_KIND,
    "utils/checkpoint.py:checkpoint(early_stop)": ALWAYS,
    "utils/checkpoint.py:checkpoint(preserve_rng_state)": ALWAYS,
    "utils/checkpoint.py:set_checkpoint_early_stop(enable)": ALWAYS,
    "utils/data/sampler.py:Sampler.__init__(data_source)": "PyTorch's, deprecated",
    "utils/tensorboard/writer.py:SummaryWriter.add_graph(use_strict_trace)": ALWAYS,
    "utils/tensorboard/writer.py:SummaryWriter.add_pr_curve_raw(num_thresholds)": "as given",
    "utils/tensorboard/writer.py:SummaryWriter.add_pr_curve_raw(weights)": "part of what is given",
    "torchmetrics/collection.py:MetricCollection.__init__(compute_groups)": HINT,
    "torchmetrics/collection.py:MetricCollection.items(copy_state)": HINT,
    "torchmetrics/collection.py:MetricCollection.values(copy_state)": HINT,
}
for name in (
    "empty",
    "full",
    "full_like",
):
    EXCEPTIONS[f"eager/functions/creation/constructor.py:{name}(pin_memory)"] = ONE_KIND
CREATION = {
    "creation/arange.py": "arange eye linspace logspace range tril_indices triu_indices",
    "creation/constructor.py": "scalar_tensor tensor",
    "creation/window.py": " ".join(
        f"{name}_window" for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")
    ),
    "random/generator.py": "normal rand randint randint_like randn randperm",
}
EXCEPTIONS |= {f"fft.py:{name}(pin_memory)": ONE_KIND for name in ("fftfreq", "rfftfreq")}
for file, names in CREATION.items():
    for name in names.split():
        EXCEPTIONS[f"eager/functions/{file}:{name}(pin_memory)"] = ONE_KIND
for name in ("clip_grad_norm_", "clip_grad_value_", "get_total_norm"):
    EXCEPTIONS[f"nn/utils/gradient.py:{name}(foreach)"] = HINT
for name in ("device_ids", "output_device", "dim", "gradient_as_bucket_view"):
    where = f"nn/parallel/data_parallel.py:DistributedDataParallel.__init__({name})"
    EXCEPTIONS[where] = ONE_KIND


def functions(package, excluded=()):
    """Public functions and methods as (file, class, definition)."""
    for path in sorted(Path(package).rglob("*.py")):
        if path.relative_to(package).parts[0] not in excluded:
            tree = ast.parse(path.read_text())
            yield from _inside(tree, path.relative_to(package).as_posix(), "")


def _inside(tree, file, owner):
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _inside(node, file, node.name)
        elif isinstance(node, ast.FunctionDef):
            yield file, owner, node
        elif isinstance(node, ast.If):
            yield from _inside(node, file, owner)


def unread(function):
    """The parameters that the body never reads; `del` and `_ = x` do not read."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [a.arg for a in (given.vararg, given.kwarg) if a is not None]
    read, dropped = set(), set()
    for node in ast.walk(ast.Module(function.body, [])):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_":
            dropped.update(id(x) for x in ast.walk(node.value))
        loads = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        if loads and id(node) not in dropped:
            read.add(node.id)
    return [n for n in names if n not in read and n[0] != "_" and n not in ("self", "cls")]


def is_stub(function):
    """Whether there is nothing but a docstring, `...`, `pass` or `raise`."""
    return all(
        isinstance(node, ast.Pass | ast.Raise)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in function.body
    )


@uncollected
def ignored(package, excluded=()):
    """`file:Class.function(parameter)` of each parameter that is accepted and not read.

    A method whose name and parameter another class reads has the signature of a protocol.
    """
    found, readers = [], defaultdict(int)
    for file, owner, function in functions(package, excluded):
        missing = unread(function)
        named = function.args
        for name in {a.arg for a in (*named.args, *named.kwonlyargs)} - set(missing):
            readers[function.name, name] += bool(owner) and function.name != "__init__"
        hidden = (owner or function.name)[0] == "_"
        special = function.name[0] == "_" and function.name not in ("__init__", "__call__")
        if not (hidden or special or is_stub(function)):
            where = f"{file}:{owner}." if owner else f"{file}:"
            found += [(f"{where}{function.name}({n})", function.name, n) for n in missing]
    return {text for text, function, name in found if not readers[function, name]}


def test_arguments_are_read():
    found = ignored(ROOT, [*INNER, *ELSEWHERE])
    assert found - EXCEPTIONS.keys() == set(), "make the argument work, or raise"
    assert EXCEPTIONS.keys() - found == set(), "these exceptions are not needed any more"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def f(a, b=1, *c, d, **e): return a", {f"x.py:f({x})" for x in "bcde"}),
        ("def f(a):\n    del a\n    return 1", {"x.py:f(a)"}),
        ("def f(a):\n    _ = a\n    return 1", {"x.py:f(a)"}),
        ("def f(a):\n    def g(): return a\n    return g", set()),
        ("def f(a): raise NotImplementedError", set()),
        ("class A:\n    def __init__(self, a): self.b = 1", {"x.py:A.__init__(a)"}),
        ("class A:\n    def f(self, a): return 1\nclass B:\n    def f(self, a): return a", set()),
    ],
)  # fmt: skip
def test_the_search_finds_them(body, expected, tmp_path):
    (tmp_path / "x.py").write_text(body)
    assert ignored(tmp_path) == expected
