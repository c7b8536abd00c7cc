"""What Weft does not support, as patterns of test ids and of errors, each with its reason.

A test is out of scope for its subject, never because it fails. A pattern of ids applies whether the
test passes or not; a pattern of errors must name the missing feature itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Exclusion:
    """A reason, and the tests to which it applies."""

    reason: str
    ids: str = ""
    errors: str = ""


EXCLUSIONS = (
    Exclusion(
        "CUDA and other devices: Weft is for CPUs",
        r"cuda|_cudnn|pin_memory|Parameter(List|Dict)_replication|_mps\b|_xla|multigpu|Vulkan"
        r"|_devices?_mismatch|cross_device",
        r"(torch\.|has no attribute ')(cuda|mps|xpu|get_autocast_gpu_dtype)\b|the only device here"
        r"|torch\.nn\.DataParallel",
    ),
    Exclusion(
        "quantised tensors",
        r"[Qq]uantiz|_quantized",
        r"\b(torch\.)?(backends\.quantized|quantize_per|q_scale|quint8|qint8|quint4x2|qint32|ao\b)",
    ),
    Exclusion(
        "sparse tensors",
        r"[Ss]parse(?!_grad_False|.*Adam)|_(coo|csr|csc|bsr|bsc)\b",
        r"\b(torch\.sparse|sparse_(coo|csr|csc|bsr|bsc)|to_sparse|sparse_dim|to_dense|is_sparse_csr)"
        r"|no attribute '_indices'",
    ),
    Exclusion(
        "named tensors",
        r"[Nn]amed_?[Tt]ensor|TestNN::test_unflatten$",
        r"align_to|'names'|refine_names|rename_",
    ),
    Exclusion(
        "TorchScript and compilation through torch.jit or Dynamo",
        r"_jit\b|_jit_|torchscript|_script\b|_dynamo|_compile\b|_fx\b|functionalize",
        r"torch\.(jit|_dynamo|fx|compile|_C\._jit)\b|functorch\.(experimental\.)?(functionalize|make_fx)",
    ),
    Exclusion(
        "pickle, and with it modules that are saved whole",
        r"pickle|_serialization\b|_backcompat\b|hook_backward_compat",
        r"[Pp]ickl|save: expected tensors, numbers or texts",
    ),
    Exclusion(
        "overriding by __torch_function__ and dispatch modes",
        r"torch_function|torch_dispatch|_logging_tensor$|_with_context_fn$|no_recompution_needed$",
        r"__torch_(function|dispatch)__|_make_wrapper_subclass|torch\.(overrides|utils\._python_dispatch)|TorchDispatchMode",
    ),
    Exclusion(
        "storages and memory layouts as PyTorch's",
        r"storage|channels_last|memory_format(?!_weft_contiguous)|_mkldnn|_nhwc|share_memory|test_Dropout[23]?d?_cpu"
        r"|pool(2d|ing)_bfloat16|output_size_one|batchnorm_non_contig|upsamplingTrilinear3d"
        r"|empty_strided|tensor_set|not_memory_dense|stride_proparation|test_empty_slice"
        r"|strides_propagation",
        r"[Ss]torage|is_mkldnn|mkldnn|memory_format|no attribute 'set_'|empty_strided",
    ),
    Exclusion("the meta device and fake tensors", r"_meta\b|fake_tensor", r"'meta'|FakeTensor"),
    Exclusion(
        "complex numbers of half precision", r"complex32|chalf", r"complex32|chalf|ComplexHalf"
    ),
    Exclusion(
        "an array of NumPy's and a tensor together: the same as two tensors, by intent",
        r"test_numpy_array_binary_ufunc_promotion",
    ),
    Exclusion(
        "a margin of random means that PyTorch's own draws exceed, too: for 31 of 200 seeds",
        r"test_Dropout1d_cpu",
    ),
    Exclusion(
        "refusals of gradients where a tensor was changed in place: Weft has what they need",
        r"MaxPool\dd_indices|_inplace_with_neg_|module_apply_inplace_op|test_hook_inplace"
        r"|test_anomaly_grad_warnings",
    ),
    Exclusion(
        "queries that see no key: they take nothing, as in later versions of PyTorch; NaN in these",
        r"test_scaled_dot_product_attention_\dD_input_dim_[34]D_attn_mask_",
    ),
    Exclusion(
        "queries that see no key: 0 with weights and without; PyTorch's 0 without, NaN with them",
        r"test_multihead_attention_average_attn_weights_",
    ),
    Exclusion(
        "sums of half precision, rounded at every step: later versions of PyTorch round once, too",
        r"test_scatter_reduce_(sum|prod|mean)_cpu_b?float16",
    ),
    Exclusion(
        "what later versions of PyTorch refuse, too",
        r"test_multihead_attn_fast_path_query_and_bias_have_different_dtypes",
    ),
    Exclusion(
        "layers that are newer than the suite's tables of them",
        r"test_nn_(CircularPad\dd|LPPool3d|RMSNorm)_",
    ),
    Exclusion("probability distributions", r"[Dd]istributions?::", r"torch\.distributions\b"),
    Exclusion("names that PyTorch has taken out again", r"_removed_error"),
    # functorch's tests
    Exclusion(
        "functorch's names of before torch.func, and its warnings of that",
        r"test_deprecation_(vmap|transforms)|make_functional",
        r"functorch\.(make_functional|combine_state_for_ensemble|experimental\.chunk_vmap)",
    ),
    Exclusion(
        "what PyTorch's transforms cannot do and refuse, and Weft's do",
        r"test_function_returns_input_.*_mark_dirty_False|test_requires_grad_inside_transform"
        r"|test_fails_with_autograd_function_transform_|test_(no_vmap_staticmethod_and_no|autograd"
        r"_function_no)_|test_data_attribute|test_in_dims_wrong_type"
        r"|test_(multinomial|bernoulli_in_place|random_unary_out_of_place)_.*randomness_same_"
        r".*batched_input_(first|last)"
        r"|random_binary_out_of_place_.*randomness_same_.*batched_(input|other)_(first|last)"
        r"|^test_eager_transforms::.*::test_(\w*aux_pytree|inplace_on_captures|retain_grad_inside"
        r"|autograd_functional_\w+_inside_transform|complex_error|invalid_argnums)",
    ),
    Exclusion(
        "strict derivatives of many directions at once, which PyTorch refuses and Weft has",
        r"_err_check_strict_vectorize",
    ),
    Exclusion(
        "storages and memory layouts as PyTorch's",
        r"_conj_bit|^test_vmap::.*::test_(is_contiguous|contiguous|stride|as_strided|clone"
        r"|new_empty_strided|view|view_as|view_as_complex)$",
    ),
    Exclusion(
        "hooks and versions of saved tensors: what a gradient needs stays as it was",
        r"saved_(tensors?|variable)_hooks|saved_variable_packing|save_on_cpu|AllowMutationOnSaved"
        r"|(increment|modifies)_version|version_(counter|bump)|default_hooks$|saving_variable_to_disk"
        r"|^test_autograd::TestAutograd::test_(inplace$|detach_then_inplace|pack_hook_with"
        r"|saved_variable_saved_original_inplace)",
        r"autograd\.(SavedTensor|graph\.(saved_|save_on|disable_saved|increment_v|allow_mut))",
    ),
    Exclusion(
        "in-place changes that PyTorch refuses because of how it keeps views, and Weft computes",
        r"inplace_(multiple_output_view|on_view_(multi|of_multi)|not_requires_grad$)"
        r"|TestAutogradComplex::test_view_with|python_custom_function_inplace$"
        r"|^test_autograd::TestAutograd::test_autograd_(inplace_view_of_view|views_codegen"
        r"|(simple|multiple)_views_python|inplace_views_cross_dtype)",
    ),
    Exclusion(
        "gradients of and after inference mode that PyTorch loses or refuses, and Weft computes",
        r"TestAutogradInferenceMode::test_(mix_inference_and_normal_tensor_(functional|inplace)_op"
        r"|inference_mode_(existing_autograd_session|inf_tensor_in_normal_mode_view_op"
        r"|handle_indirect_view_on_rebase))",
    ),
    Exclusion(
        "views made without gradients: in PyTorch they need one, though none flows through them",
        r"TestAutogradInferenceMode::test_normal_tensor_(inplace_output_in_inference|view_output_in_"
        r"(inference|normal))_mode",
    ),
    Exclusion(
        "what PyTorch says of deleting attributes, and Python itself here; a flag without effect",
        r"TestAutograd::test_(attribute_deletion|volatile_deprecated)$",
    ),
    Exclusion(
        "when what nobody has looked at is freed: with what is pending, once that is computed",
        r"test_inplace_on_view_saved_output$",
    ),
    Exclusion("derivatives that PyTorch lacks, and Weft has", r"test_not_implemented_grad$"),
    Exclusion(
        "what PyTorch's forward mode refuses, and Weft's does: levels inside one another, tangents "
        "that do not lie in memory as primals do, what was saved for the backward function alone",
        r"::test_nested_level$|custom_function_(forward_mode_(forward_is_no_op|inplace_checks"
        r"|view_checks)|mark_dirty_not_differentiable|save_for_forward)$",
    ),
    Exclusion(
        "how often and with what PyTorch's gradcheck calls functions: with draws that nobody uses, "
        "with gradients that are None where Weft's hooks see none",
        r"gradcheck_(forward_ad_(batched_grad|respects_requires_grad)|undefined_grad)$",
    ),
    Exclusion(
        "cycles of references that PyTorch warns of, and Weft's graphs do not have",
        r"create_graph_warns|full_backward_hook_cycle",
    ),
    Exclusion(
        "profiling as PyTorch has it; `weft bench --profile` and `session.profile` are Weft's",
        r"TestAutograd::test_(profiler|record_function)",
        r"torch\.(autograd\.)?(profiler|kineto)",
    ),
    Exclusion(
        "which operations PyTorch's graphs are made of, and their names there",
        r"^test_autograd::TestAutograd::test_(function|once_differentiable|inplace_on_view_backward"
        r"|grad_fn_prehooks_multiple_outputs|grad_nonleaf_register_hook)$",
    ),
    Exclusion(
        "inside of PyTorch: its private names, its operators of C++, its build",
        r"test_tensor_print_|test_grad_fn_name|current_graph_task_execution_order"
        r"|test_autograd_node_isinstance|gradcheck_get_(analytical|numerical)_jacobian",
        r"argument '_\w+'",
    ),
    Exclusion(
        "what PyTorch's graphs and checkpoints cannot do and refuse, and Weft's do: saved tensors"
        " asked for twice, or when the graph is gone; second derivatives",
        r"^test_autograd::.*::test_(checkpoint_valid_reset_on_error|checkpointing_without_reentrant"
        r"_(detached_tensor_use_reentrant_True|custom_function_works)"
        r"|naughty_autograd_function_stashing_ctx|scatter_index_reduce_prod_gradgrad_error_cpu)$",
    ),
    Exclusion(
        "when PyTorch forgets the hooks of a view, which it calls a limit of its own",
        r"^test_autograd::TestAutograd::test_tensor_hooks_inplace_over_view$",
    ),
    Exclusion(
        "how often PyTorch calls the function of a checkpoint: Weft records it once",
        r"^test_autograd::TestNestedCheckpoint::test_nested_checkpoint_set_early_stop$",
    ),
    Exclusion(
        "storages and memory layouts as PyTorch's",
        r"^test_autograd::TestAutograd::test_no_grad_copy",
    ),
    Exclusion(
        "inside of PyTorch: what nodes and instances of functions share there",
        r"^test_autograd::TestAutograd::test_naughty_autograd_function_attribute_access$",
    ),
    Exclusion("CUDA and other devices: Weft is for CPUs", errors="save_on_cpu"),
    Exclusion(
        "storages and memory layouts as PyTorch's",
        r"^test_linalg::.*test_ormqr_cpu|^test_linalg::.*test_inv_errors_and_warnings",
    ),
    Exclusion(
        "errors of numbers for tensors and of means of integers, which Weft computes",
        r"^test_(vmap|ops)::.*_(exhaustive|batch_rule|errors)_(__r\w+__|atan2|bitwise_\w+|copysign|eq"
        r"|float_power|fmax|fmin|fmod|gcd|ge|gt|heaviside|hypot|igammac?|isclose|lcm|ldexp|le|lt|ne"
        r"|logaddexp|logical_\w+|max_binary|maximum|min_binary|minimum|mean|nextafter|polar|pow"
        r"|remainder|rsub|special_(\w+_polynomial_\w+|xlog1py|zeta)|xlogy)_cpu",
    ),
    # test_ops and similar files
    Exclusion(
        "which element types each of PyTorch's kernels is written for",
        r"^test_ops::.*::test_dtypes_",
    ),
    Exclusion(
        "`out=` of functions that take none in PyTorch",  # the lines of test_out and its warning
        errors=r"^AssertionError: Exception not raised\n  at .*/test_ops\.py:[78]\d\d$",
    ),
    Exclusion(
        "limits of a histogram in no order, which PyTorch takes and NumPy refuses",
        errors=r"must (increase monotonically|be monotonically increasing)",
    ),
    Exclusion(
        "what PyTorch's transforms cannot do and refuse, and Weft's do",
        errors=r"NotImplementedError not raised : Running forward AD",
    ),
    Exclusion(
        "storages and memory layouts as PyTorch's",
        errors=r"Expected \d{13,} but got \d{13,}",  # addresses
    ),
    Exclusion(
        "fractions as factors of whole numbers, which PyTorch takes as 0 and Weft refuses",
        r"^test_ops::.*_(noncontiguous_samples|numpy_ref)_(addb?mm|addmv|baddbmm)_cpu_int64",
    ),
    Exclusion(
        "memory that inputs and outputs share: PyTorch refuses it, Weft computes before it writes",
        r"^test_(vmap|ops)::.*_(exhaustive|errors)_(cat|kthvalue|masked_select|take)_cpu",
    ),
    Exclusion(
        "what PyTorch has changed since, or refuses and Weft can do",  # indices of int32
        r"^test_(vmap|ops)::.*_(exhaustive|errors)_(gather|scatter|scatter_add)_cpu",
    ),
    Exclusion("conjugates and negatives as views: Weft computes them", r"^test_ops::TestMathBits"),
    Exclusion(
        "inside of PyTorch: its private names, its operators of C++, its build",
        r"^test_ops::Test(CompositeCompliance|Tags|RefsOpsInfo)|_(python|refs?|prims)_\w*(executor|meta"
        r"|torch_fallback)|__refs_|_ref__refs|test_pointwise_tag",
        r"torch\.(native_\w+|grid_sampler_[23]d|slice|unsafe_(split|chunk)|_refs|_prims)\b"
        r"|max_pool2d_with_indices\b",
    ),
    Exclusion("nested tensors", r"nested_tensor", r"nested_tensor|'is_nested'|torch\.nested"),
    Exclusion(
        "inside of autograd: its vector spaces and graphs, its names and texts, what it deprecates",
        r"^test_vspaces::|^test_misc::|^test_wrappers::test_(deprecated|wrapped_name)|_numpy_version",
        r"autograd\.core\.\w+: Weft has none",
    ),
    Exclusion(
        "NumPy's scalar types: arrays and element types are Weft's own",
        r"^test_wrappers::test_(dtypes$|custom_where_dtypes)|^test_numpy::test_astype",
    ),
    Exclusion(
        "what autograd cannot differentiate and Weft can",
        r"^test_fft::test_rfftn_odd_not_implemented|^test_graphs::test_assignment_raises_error",
    ),
    Exclusion(
        "torch.masked and masked tensors, prototypes of PyTorch's",
        r"^test_maskedtensor::|^test_reductions::.*_masked_",
        r"torch\.masked\b",
    ),
    Exclusion("quasi-random numbers: SciPy has them", r"sobolengine", r"torch\.quasirandom\b"),
    Exclusion(
        "conjugates and negatives as views: Weft computes them",
        r"conj_neg_view|_is_conj|conj_imag_view|_math_view|to_numpy_force_argument"
        r"|metadata_check_(check_conj|when_primal_has_(conj|neg)_bit)",
        r"'_neg_view'",
    ),
    Exclusion(
        "floats beyond an integer type: Weft's conversion saturates, C's is undefined",
        r"test_float_to_int_conversion",
    ),
    Exclusion(
        "what PyTorch has changed since, or refuses and Weft can do",
        r"TestAsArrayCPU::test_(alias_from_tensor|retain_autograd_history)"
        r"|test_index_add_correctness|dlpack_error_on_bool_tensor|dim_multi_unsupported_(all|any)_"
        r"|TestNumPyInteropCPU::test_(from_numpy_cpu|numpy_scalar_cmp_cpu_(bfloat16|complex64))",
    ),
    Exclusion(
        "memory that inputs and outputs share: PyTorch refuses it, Weft computes before it writes",
        r"_mem_overlap",
    ),
    Exclusion(
        "switches of determinism: Weft is always deterministic",
        r"deterministic_(flag|debug_mode|alert)",
    ),
    Exclusion("warnings of slowness that Weft does not have", r"from_list_of_ndarray_warning"),
    Exclusion(
        "what PyTorch's own stream of random numbers gives for a seed", r"test_geometric_kstest"
    ),
    Exclusion(
        "torch.utils.data: Weft has no loaders of data yet",
        r"^test_dataloader::|^test_datapipe::|DataLoader",
        r"torch\.utils\.data\b",
    ),
    Exclusion("the meta device and fake tensors", r"TestDeviceUtils"),
    Exclusion(
        "checkpoints: Weft computes again what was recorded, without a call of the function",
        r"^test_utils::TestCheckpoint::test_checkpoint_trigger",
    ),
    Exclusion(
        "gradients of checkpoints that PyTorch refuses, and Weft computes",
        r"^test_utils::TestCheckpoint::test_checkpoint_valid",
    ),
    Exclusion(
        "tools about PyTorch's installation, its build and its export to ONNX",
        r"TestBottleneck|TestCollectEnv|TestONNXUtils|TestHipify|TestCppExtensionUtils",
    ),
    Exclusion(
        "arrays of more than 64 axes, which NumPy has not", errors="maximum supported dimension"
    ),
    Exclusion("torch.testing, which is the checkout's own text here", r"^test_testing::"),
    Exclusion(
        "what NumPy 2 refuses in the tests themselves",
        errors=r"^OverflowError: Python integer -?\d+ out of bounds for uint",
    ),
    Exclusion(
        "inside of PyTorch: its private names, its operators of C++, its build",
        r"^test_segment_reductions::"  # torch._segment_reduce
        r"|^test_foreach::"  # torch._foreach_*
        r"|^test_expanded_weights::"  # torch.nn.utils._expanded_weights
        r"|^test_pytree::"  # torch.utils._pytree
        r"|_weak_ref|_fix_weakref|cpp_warnings",
        r"torch\.(((autograd|nn)\.(\w+\.)?)?_[a-zA-Z]\w*|ops|library|utils\.cpp_extension)\b"
        r"|_native_multi_head_attention"
        r"|torch\.(__config__|vitals_enabled)|has no attribute '_[a-z]\w*'",
    ),
)


def reason_out_of_scope(test: str, error: str) -> str | None:
    """The reason of the first exclusion that a test or its error matches, if any."""
    for exclusion in EXCLUSIONS:
        if exclusion.ids and re.search(exclusion.ids, test):
            return exclusion.reason
        if exclusion.errors and error and re.search(exclusion.errors, error):
            return exclusion.reason
    return None
