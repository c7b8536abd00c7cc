"""L-BFGS: steps along directions that use curvature; the loss is evaluated several times a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from weft.eager.functions.api import Tensor, cat, enable_grad, no_grad, zeros_like
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import OptimizerError
from weft.optim.optimizer import Optimizer
from weft.optim.option import option

_LISTS: Final = ("old_dirs", "old_stps", "ro")
"""Past changes of the gradient and of the parameters, and 1 / their products: PyTorch's names."""
_FORMER: Final = {"direction": "d", "previous": "prev_flat_grad", "scale": "H_diag"}


def _renamed(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state with PyTorch's names, also if it was saved when entries had others."""
    renamed = {_FORMER.get(name, name): value for name, value in state.items()}
    pairs = renamed.pop("pairs", None)
    if pairs is not None:
        renamed.update({name: [pair[i] for pair in pairs] for i, name in enumerate(_LISTS)})
    return renamed


def _owned(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state whose lists are its own; single numbers are no tensors, as PyTorch saves them."""
    owned = {name: value for name, value in state.items() if name != "al"}  # made in each step
    for name in _LISTS[:2]:
        owned[name] = [wrap(leaf(x.array.copy())) for x in owned.get(name) or []]
    owned["ro"] = [float(x) for x in owned.get("ro") or []]
    if "H_diag" in owned:
        owned["H_diag"] = float(owned["H_diag"])
    return owned


class _Point(NamedTuple):
    """A point on the search line: step length, loss, gradient, and slope along the line."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


def _check_search(owner: str, name: str, value: str | None) -> str | None:
    if value not in (None, "strong_wolfe"):
        raise OptimizerError.here(f"{owner}: expected {name} None or 'strong_wolfe', got {value!r}")
    return value


class LBFGS(Optimizer):
    """Limited-memory BFGS: Nocedal and Wright, "Numerical Optimization", 2006, algorithms 7.4, 3.5.

    `step` needs a closure and calls it several times.

    Args:
        lr: step length, or the initial one of the line search.
        max_iter: iterations per step.
        max_eval: closure calls per step; 1.25 times `max_iter` by default.
        tolerance_grad, tolerance_change: stop when the gradient or the change is smaller.
        history_size: number of past changes that the curvature is estimated from.
        line_search_fn: `None`, or "strong_wolfe".
    """

    elementwise = False

    params: Iterable[Any]
    lr: float = option(default=1.0)
    max_iter: int = option(default=20)
    max_eval: int | None = option(default=None)
    tolerance_grad: float = option(default=1e-7)
    tolerance_change: float = option(default=1e-9)
    history_size: int = option(default=100)
    line_search_fn: str | None = option(default=None, check=_check_search)

    def __post_init__(self) -> None:
        most = self.defaults["max_iter"] * 5 // 4
        for options in (self.defaults, *self.param_groups):
            if options["max_eval"] is None:
                options["max_eval"] = most
        if len(self.param_groups) != 1:
            raise OptimizerError.here(
                f"LBFGS: expected one group of parameters, got {len(self.param_groups)}"
            )

    def begin(self) -> None:
        """Its state is made by its first step.

        Raises:
            OptimizerError: it has made no step.
        """
        if not self.state:
            raise OptimizerError.here(
                "LBFGS: expected state, which its first step makes; give the optimizer itself to "
                "save and load"
            )

    def _step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate until the tolerances or limits are reached.

        Args:
            closure: computes the loss again, calls `backward` and returns the loss.

        Returns:
            The loss that the first call of the closure gave.

        Raises:
            OptimizerError: no closure.
        """
        if closure is None:
            raise OptimizerError.here("LBFGS: step needs a closure")
        with enable_grad():
            first = closure()
        with no_grad():
            self._iterate(closure, first.item())
        if self.count is not None:
            self.count(1)
        return first

    def _iterate(self, closure: Callable[[], Any], loss: float) -> None:
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        gradient = self._gradient()
        calls = 1
        state["func_evals"] = state.get("func_evals", 0) + 1
        for _ in range(group["max_iter"]):
            if _largest(gradient) <= group["tolerance_grad"] or calls >= group["max_eval"]:
                return
            direction = self._direction(state, gradient)
            slope = float((gradient * direction).sum())
            if slope > -group["tolerance_change"]:
                return
            begin = state["t"] = self._length(state, gradient)
            state["prev_flat_grad"], state["prev_loss"] = gradient, loss
            line = _Line(self, closure, direction, _Point(0.0, loss, gradient, slope))
            if group["line_search_fn"]:
                line.search(begin, group["tolerance_change"])
                point = line.best
                line.go_to(point.t)
            else:
                point = line.at(begin)
            calls += line.calls
            state["func_evals"] += line.calls
            change = abs(point.loss - loss)
            loss, gradient, state["t"] = point.loss, point.gradient, point.t
            moved = _largest(direction) * abs(point.t)
            if moved <= group["tolerance_change"] or change < group["tolerance_change"]:
                return

    def _length(self, state: dict[str, Any], gradient: Tensor) -> float:
        """The initial step length."""
        lr: float = self.param_groups[0]["lr"]
        state["n_iter"] = state.get("n_iter", 0) + 1
        if state["n_iter"] > 1:
            return lr
        return min(1.0, 1.0 / float(gradient.abs().sum())) * lr

    def _direction(self, state: dict[str, Any], gradient: Tensor) -> Tensor:
        """The search direction: minus the estimated inverse Hessian times the gradient."""
        changes, moves, weights = (state.setdefault(name, []) for name in _LISTS)
        if "d" in state:
            change = gradient - state["prev_flat_grad"]
            moved = state["d"] * state["t"]
            product = float((change * moved).sum())
            if product > 1e-10:
                for kept, new in zip(
                    (changes, moves, weights), (change, moved, 1.0 / product), strict=True
                ):
                    kept.append(new)
                    del kept[: -self.param_groups[0]["history_size"]]
                state["H_diag"] = product / float((change * change).sum())
        q = -gradient
        shares: list[float] = []
        pairs = list(zip(changes, moves, weights, strict=True))
        for change, moved, weight in reversed(pairs):
            shares.append(float((moved * q).sum()) * weight)
            q = q - change * shares[-1]
        q = q * state.get("H_diag", 1.0)
        for (change, moved, weight), share in zip(pairs, reversed(shares), strict=True):
            q = q + moved * (share - float((change * q).sum()) * weight)
        state["d"] = q
        return q

    def _load(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state, also one of PyTorch, whose entries have the same names."""
        super()._load(state_dict)
        for p, state in self.state.items():
            self.state[p] = _owned(_renamed(state))

    def _gradient(self) -> Tensor:
        """The gradients of all parameters, concatenated."""
        grads = [zeros_like(p) if p.grad is None else p.grad for p in self._parameters()]
        return cat([g.reshape(-1) for g in grads])

    def move(self, direction: Tensor, t: float) -> None:
        """Add `t` times a direction to the parameters."""
        start = 0
        for p in self._parameters():
            part = direction[start : start + p.numel()].reshape(p.shape)
            p.add_(part.to(p.dtype) * t)
            start += p.numel()

    def look(self, closure: Callable[[], Any]) -> tuple[float, Tensor]:
        """The loss and the gradient at the current parameters."""
        with enable_grad():
            loss = float(closure())
        return loss, self._gradient()


class _Line:
    """The loss along a line.

    Attributes:
        best: the point with the lowest loss so far that meets the search's conditions.
        calls: how often the closure was called.
    """

    steps = 25

    def __init__(
        self, owner: LBFGS, closure: Callable[[], Any], direction: Tensor, start: _Point
    ) -> None:
        self.owner, self.closure, self.direction = owner, closure, direction
        self.start = self.best = start
        self.here = 0.0
        self.calls = 0

    def go_to(self, t: float) -> None:
        """Set the parameters to the point at `t`."""
        if t != self.here:
            self.owner.move(self.direction, t - self.here)
            self.here = t

    def at(self, t: float) -> _Point:
        """Evaluate the point at `t`."""
        self.go_to(t)
        self.calls += 1
        loss, gradient = self.owner.look(self.closure)
        return _Point(t, loss, gradient, float((gradient * self.direction).sum()))

    def _rises(self, point: _Point) -> bool:
        """Whether the loss has not decreased enough (Armijo's condition fails)."""
        return point.loss > self.start.loss + 1e-4 * point.t * self.start.slope

    def _is_flat(self, point: _Point) -> bool:
        """Whether the slope is small enough (the curvature condition)."""
        return abs(point.slope) <= -0.9 * self.start.slope

    def search(self, t: float, tolerance: float) -> None:
        """Find a point that meets the strong Wolfe conditions: bracket it, then narrow the
        bracket.
        """
        before, point = self.start, self.at(t)
        for i in range(self.steps):
            if self._rises(point) or (i and point.loss >= before.loss):
                return self._zoom(before, point, tolerance)
            if self._is_flat(point):
                self.best = point
                return None
            if point.slope >= 0:
                return self._zoom(point, before, tolerance)
            low = point.t + 0.01 * (point.t - before.t)
            further = _between(before, point, low, point.t * 10)
            before, point = point, self.at(further)
        self.best = point
        return None

    def _zoom(self, low: _Point, high: _Point, tolerance: float) -> None:
        """Narrow a bracket whose `low` end has the lower loss."""
        for _ in range(self.steps):
            left, right = sorted((low.t, high.t))
            if (right - left) * _largest(self.direction) < tolerance:
                break
            margin = 0.1 * (right - left)
            t = _between(low, high, left, right)
            point = self.at(min(max(t, left + margin), right - margin))
            if self._rises(point) or point.loss >= low.loss:
                high = point
                continue
            if self._is_flat(point):
                low = point
                break
            if point.slope * (high.t - low.t) >= 0:
                high = low
            low = point
        self.best = low


def _largest(x: Tensor) -> float:
    return float(x.abs().max())


def _between(a: _Point, b: _Point, low: float, high: float) -> float:
    """The minimum of the cubic through two points' losses and slopes, within bounds."""
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2
    d2 = square**0.5
    bottom = b.slope - a.slope + 2 * d2
    if not bottom:
        return (low + high) / 2
    t = b.t - (b.t - a.t) * (b.slope + d2 - d1) / bottom
    return min(max(t, low), high)
