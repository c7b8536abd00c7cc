"""Copies of views, such as `narrow_copy`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.documentation import named
from weft.eager.tensor.dispatch import lazy_of, wrap
from weft.eager.tensor.handle import Handle

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "as_strided_copy", "detach_copy", "diagonal_copy", "expand_copy", "narrow_copy", "permute_copy",
    "select_copy", "split_copy", "squeeze_copy", "t_copy", "transpose_copy", "unbind_copy",
    "unfold_copy", "unsqueeze_copy", "view_copy",
]  # fmt: skip


def _copying(name: str) -> Callable[..., Any]:
    """The function that copies the view of the method `name`; several views become a tuple."""

    @named(f"{name}_copy", f"`{name}` with memory of its own.")
    def copied(x: Any, *args: Any, **options: Any) -> Tensor:
        tensor: Any = x if isinstance(x, Handle) else wrap(lazy_of(x))
        view = getattr(tensor, name)(*args, **options)
        return tuple([y.clone() for y in view]) if isinstance(view, tuple) else view.clone()  # pyright: ignore

    return copied


as_strided_copy = _copying("as_strided")
detach_copy = _copying("detach")
diagonal_copy = _copying("diagonal")
expand_copy = _copying("expand")
narrow_copy = _copying("narrow")
permute_copy = _copying("permute")
select_copy = _copying("select")
split_copy = _copying("split")
squeeze_copy = _copying("squeeze")
t_copy = _copying("t")
transpose_copy = _copying("transpose")
unbind_copy = _copying("unbind")
unfold_copy = _copying("unfold")
unsqueeze_copy = _copying("unsqueeze")
view_copy = _copying("view")
