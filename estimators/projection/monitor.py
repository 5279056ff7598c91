"""How much of the target signal reaches each layer."""

from types import TracebackType
from typing import Any, Self

import pandas as pd
import torch
from torch import nn

__all__ = ["TargetSignalMonitor"]


def length(d: torch.Tensor) -> torch.Tensor:
    """Euclidean norm whose squares don't fall out of the range of float32."""
    largest = d.abs().max().clamp(min=torch.finfo(d.dtype).tiny)
    return torch.linalg.vector_norm(d / largest) * largest


class TargetSignalMonitor:
    """Record the size of the displacement that reaches the output of each layer, step by step.

    The size is |D|_F / sqrt(B): the root mean square over the samples of a sample's displacement.
    In gradient mode it is the gradient's. Where the model's input requires a gradient, the
    displacement that leaves at the bottom is recorded too, as "input".

    Parameters
    ----------
    model : torch.nn.Module
        Its linear and convolutional layers are watched, until `close`.
    kinds : tuple of type, default=(torch.nn.Linear, torch.nn.Conv2d)
        Which modules are watched.

    Raises
    ------
    ValueError
        If the model has no such module.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from equipoise.estimators import ProxMSELoss, TargetSignalMonitor, project
    >>> model = project(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)))
    >>> with TargetSignalMonitor(model) as monitor:
    ...     ProxMSELoss()(model(torch.ones(3, 4)), torch.ones(3, 2)).backward()
    >>> monitor.to_frame()["layer"].tolist()
    ['0', '2']
    """

    def __init__(self, model: nn.Module, kinds: tuple[type, ...] = (nn.Linear, nn.Conv2d)) -> None:
        named = [(name, m) for name, m in model.named_modules() if isinstance(m, kinds)]
        watched: dict[str, Any] = {name or "model": module for name, module in named}
        if not watched:
            raise ValueError(f"model has no {' or '.join(kind.__name__ for kind in kinds)} module")
        self.layers = tuple(watched)
        self._input_handles: list[Any] = []
        self.clear()
        self._handles = [model.register_forward_pre_hook(self._start)]
        for name, module in watched.items():
            self._handles.append(module.register_forward_hook(self._watching(name)))

    def _start(self, model: nn.Module, inputs: tuple[Any, ...]) -> None:
        """A new step: the model runs forward."""
        self._step += 1
        # An input may be given again, and would then be recorded for both steps.
        self._forget_inputs()
        for tensor in inputs:
            if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
                hook = self._recording("input", self._step)
                self._input_handles.append(tensor.register_hook(hook))

    def _forget_inputs(self) -> None:
        """Take the hooks off the last step's inputs."""
        for handle in self._input_handles:
            handle.remove()
        self._input_handles = []

    def _watching(self, name: str) -> Any:
        """The forward hook of a layer."""

        def hook(module: nn.Module, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
            if output.requires_grad:
                output.register_hook(self._recording(name, self._step))

        return hook

    def _recording(self, name: str, step: int) -> Any:
        """The hook of a tensor."""

        def hook(d: torch.Tensor) -> None:
            rows = d.shape[0] if d.ndim > 1 else 1
            self._records.append((step, name, length(d.detach()) / rows**0.5))

        return hook

    def clear(self) -> None:
        """Forget what was recorded."""
        self._step = 0
        self._records: list[tuple[int, str, torch.Tensor]] = []

    def to_frame(self) -> pd.DataFrame:
        """Return what was recorded.

        Returns
        -------
        pandas.DataFrame
            ``step`` (from 1), ``layer`` (its name in the model; sorted as in the forward pass) and
            ``signal``, a row for each layer and step. A layer used more than once in a step has the
            root of the sum of squares.
        """
        rows = [(step, name, float(size)) for step, name, size in self._records]
        frame = pd.DataFrame(rows, columns=["step", "layer", "signal"])
        frame["layer"] = pd.Categorical(frame["layer"], ["input", *self.layers], ordered=True)
        frame["signal"] **= 2
        frame = frame.groupby(["step", "layer"], observed=True, as_index=False).sum()
        frame["signal"] **= 0.5
        frame["layer"] = frame["layer"].astype(str)
        return frame

    def close(self) -> None:
        """Take the hooks off the model; what was recorded stays."""
        self._forget_inputs()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
