"""An optimiser for displacements: a base optimiser, relaxation, and sets that weights stay in."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.optim import SGD, Adam, Optimizer

from .arrays import require_option, require_positive
from .muon import Muon

__all__ = ["DEFAULT_LR", "ProjectionOptimizer"]

#: Learning rates where none is given. With SGD 1.0 is the projection itself.
DEFAULT_LR = {"muon": 1e-2, "adam": 1e-3, "sgd": 1.0}
#: Learning rate of Adam, for what Muon doesn't take, over Muon's.
VECTOR_SHARE = 0.1

Constraint = Callable[[torch.Tensor], torch.Tensor]


def grouped(params: Iterable[Any], lr: float) -> list[dict[str, Any]]:
    """Parameter groups, each with a learning rate."""
    params = list(params)
    if params and isinstance(params[0], dict):
        return [{"lr": lr, **group, "params": list(group["params"])} for group in params]
    return [{"lr": lr, "params": params}]


def part_of(
    groups: list[dict[str, Any]], wanted: Callable[[torch.Tensor], bool], share: float
) -> list[dict[str, Any]]:
    """The groups with only some of their parameters, at a share of their learning rates."""
    parts = [
        {**g, "lr": share * g["lr"], "params": [p for p in g["params"] if wanted(p)]}
        for g in groups
    ]
    return [part for part in parts if part["params"]]


def base_optimizers(
    base: Any, groups: list[dict[str, Any]], lr: float, options: dict[str, Any]
) -> list[Optimizer]:
    """What takes the steps: one optimiser, or Muon for matrices and Adam for vectors."""
    if callable(base):
        return [base(groups, lr, **options)]
    if base == "adam":
        return [Adam(groups, **options)]
    if base == "sgd":
        return [SGD(groups, **options)]
    matrices = part_of(groups, lambda p: p.ndim > 1, 1.0)
    vectors = part_of(groups, lambda p: p.ndim <= 1, VECTOR_SHARE)
    found: list[Optimizer] = [Muon(matrices, **options)] if matrices else []
    return [*found, Adam(vectors)] if vectors else found


class ProjectionOptimizer(Optimizer):
    """A base optimiser that takes displacements for gradients, then projects weights onto sets.

    Parameters
    ----------
    params : iterable of tensor or dict
        Parameters or groups, as for any torch optimiser.
    base : {"muon", "adam", "sgd"} or callable, default="muon"
        What turns displacements into steps. "muon" takes matrices (convolutions as matrices) in the
        parameters' own precision, and gives vectors to Adam at a tenth of its learning rate. "sgd"
        at lr=1 steps to the projection itself. A callable is given ``(groups, lr, **kwargs)`` and
        returns a torch optimiser.
    lr : float, default=None
        Learning rate, > 0; None: 1e-2 for "muon", 1e-3 for "adam", 1.0 for "sgd". A callable needs
        it.
    relaxation : float, default=1.0
        In (0, 2): the share of the base's step that is taken.
    constraints : callable or sequence of (parameters, callable), default=None
        Projections after each step: a function from tensor to tensor, for every parameter with two
        dimensions or more; or pairs that name the parameters.
    **kwargs : object
        For the base. Weight decay should be decoupled: displacements have another scale than
        gradients.

    Raises
    ------
    ValueError
        If an option isn't allowed.

    Notes
    -----
    Adam divides by the displacement's size plus 1e-8: far from the output of a deep network
    displacements are smaller, and its steps vanish. Muon's and SGD's don't have such a floor.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjectionOptimizer, ProjLinear, ProxMSELoss, project_box
    >>> layer = ProjLinear(2, 1, bias=False)
    >>> optimizer = ProjectionOptimizer(
    ...     layer.parameters(), base="sgd", constraints=lambda w: project_box(w, 0, 1)
    ... )
    >>> ProxMSELoss()(layer(torch.ones(4, 2)), torch.full((4, 1), 9.0)).backward()
    >>> optimizer.step()
    >>> bool(((layer.weight >= 0) & (layer.weight <= 1)).all())
    True
    """

    #: A GradScaler then asks this optimiser to unscale, which it refuses.
    _step_supports_amp_scaling = True

    def __init__(
        self,
        params: Iterable[Any],
        base: str | Callable[..., Optimizer] = "muon",
        lr: float | None = None,
        relaxation: float = 1.0,
        constraints: Constraint | Sequence[tuple[Any, Constraint]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not callable(base):
            require_option("base", base, tuple(DEFAULT_LR))
            lr = DEFAULT_LR[base] if lr is None else lr
        elif lr is None:
            raise ValueError(
                "lr=None is not allowed with a callable base; allowed: numbers above 0"
            )
        lr = require_positive("lr", lr)
        if not 0 < relaxation < 2:
            raise ValueError(
                f"relaxation={relaxation!r} is not allowed; allowed: numbers in (0, 2)"
            )
        groups = grouped(params, lr)
        super().__init__(groups, {"lr": lr})
        self.relaxation = float(relaxation)
        self.constrained = self._constrained(constraints)
        self.bases = base_optimizers(base, groups, lr, kwargs)
        # Shared, not copied: a scheduler's new learning rates reach the bases.
        self.param_groups = [group for found in self.bases for group in found.param_groups]

    def _constrained(self, constraints: Any) -> list[tuple[list[torch.Tensor], Constraint]]:
        """Pairs of parameters and the projection after each step."""
        if constraints is None:
            return []
        everything = [p for group in self.param_groups for p in group["params"]]
        if callable(constraints):
            return [([p for p in everything if p.ndim > 1], constraints)]
        pairs = []
        for pair in constraints:
            if not (isinstance(pair, Sequence) and len(pair) == 2 and callable(pair[1])):
                raise ValueError(
                    f"constraints holds {pair!r:.60}; allowed: a function, or pairs "
                    "(parameters, function)"
                )
            chosen = [pair[0]] if isinstance(pair[0], torch.Tensor) else list(pair[0])
            if not all(any(p is q for q in everything) for p in chosen):
                raise ValueError("constraints names a parameter that isn't in params")
            pairs.append((chosen, pair[1]))
        return pairs

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Only the constructor adds groups: they are shared with the base optimisers."""
        if hasattr(self, "bases"):
            raise NotImplementedError(
                "ProjectionOptimizer takes all parameters when it is built; build a new one"
            )
        super().add_param_group(param_group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step, relax it, and project the constrained weights; return the closure's loss."""
        if getattr(self, "found_inf", None) is not None:
            raise RuntimeError(
                "a GradScaler steps this optimiser; displacements don't scale with the loss, so "
                "unscaling would make them vanish: train without a GradScaler"
            )
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            before = self._positions() if self.relaxation != 1 else []
            for base in self.bases:
                base.step()
            for p, old in before:
                p.copy_(old.lerp(p, self.relaxation))
            for chosen, constraint in self.constrained:
                for p in chosen:
                    new = constraint(p.detach())
                    if not isinstance(new, torch.Tensor) or new.shape != p.shape:
                        raise ValueError(
                            f"a constraint returned {type(new).__name__} of shape "
                            f"{tuple(getattr(new, 'shape', ()))}; expected a tensor of shape "
                            f"{tuple(p.shape)}"
                        )
                    p.copy_(new)
        return loss

    def _positions(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Every parameter with a displacement, and a copy of it."""
        everything = (p for group in self.param_groups for p in group["params"])
        return [(p, p.detach().clone()) for p in everything if p.grad is not None]

    def state_dict(self) -> dict[str, Any]:
        """The state of the base optimisers."""
        return {"bases": [base.state_dict() for base in self.bases]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state of the base optimisers."""
        if len(state_dict.get("bases", ())) != len(self.bases):
            raise ValueError("state_dict doesn't come from an optimiser with the same base")
        for base, state in zip(self.bases, state_dict["bases"], strict=True):
            base.load_state_dict(state)
        self.param_groups = [group for base in self.bases for group in base.param_groups]

    def __getstate__(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("relaxation", "constrained", "bases")}
        return {**super().__getstate__(), **own}
