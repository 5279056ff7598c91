"""Torch modules of the amortised model: encoder, decoders, and the loss's two terms.

The encoder emits offsets of the posterior's parameters, so that a network of zeros is the collapsed
state. For decoders linear in z the expected squared error of a Dirichlet posterior is exact; for a
decoder linear in the log-ratios c = log z - mean(log z) that of every family is, because c depends
on independent log w alone. Everything else sees samples.
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from .posteriors import make_posterior

__all__ = [
    "ConcentrationEncoder",
    "DirichletVAE",
    "HullEndmembers",
    "LinearEndmembers",
    "LogRatioDecoder",
    "SimplexMLPDecoder",
]

#: Logarithm of the least noise variance that is believed, as a share of the data's variance.
LOG_NOISE_FLOOR = float(np.log(1e-6))

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "elu": nn.ELU,
}


def multilayer(
    n_inputs: int, hidden_layer_sizes: Sequence[int], n_outputs: int, activation: str
) -> nn.Sequential:
    """A perceptron whose last layer starts small and without bias."""
    layers: list[nn.Module] = []
    width = n_inputs
    for size in hidden_layer_sizes:
        layers += [nn.Linear(width, size), ACTIVATIONS[activation]()]
        width = size
    last = nn.Linear(width, n_outputs)
    with torch.no_grad():
        last.weight *= 0.1
        last.bias.zero_()
    return nn.Sequential(*layers, last)


class ConcentrationEncoder(nn.Module):
    """Perceptron from standardised rows to offsets of the posterior's parameters.

    Parameters
    ----------
    n_features, n_outputs : int
        Widths of input and output.
    hidden_layer_sizes : sequence of int, default=(64,)
        Hidden widths; empty for a linear encoder.
    activation : {"relu", "tanh", "gelu", "elu"}, default="relu"
        After each hidden layer.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators.dirichlet_vae.networks import ConcentrationEncoder
    >>> ConcentrationEncoder(5, 3)(torch.zeros(2, 5)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        hidden_layer_sizes: Sequence[int] = (64,),
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.layers = multilayer(n_features, hidden_layer_sizes, n_outputs, activation)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Offsets (n, n_outputs) for rows (n, n_features)."""
        return self.layers(X)


class LinearEndmembers(nn.Module):
    """Decoder z -> V z, optionally with each band of V between bounds.

    Parameters
    ----------
    V : Tensor of shape (n_features, n_components)
        Where the endmembers start.
    lower, upper : Tensor of shape (n_features,), optional
        Bounds of each band.
    """

    lower: torch.Tensor
    upper: torch.Tensor

    def __init__(
        self,
        V: torch.Tensor,
        lower: torch.Tensor | None = None,
        upper: torch.Tensor | None = None,
    ) -> None:
        super().__init__()
        self.V = nn.Parameter(V.clone())
        self.register_buffer("lower", lower)
        self.register_buffer("upper", upper)
        self.project()

    def project(self) -> None:
        """Cut the endmembers to the bounds: called after each optimiser step."""
        if self.lower is not None:
            with torch.no_grad():
                self.V.clamp_(self.lower[:, None], self.upper[:, None])

    def endmembers(self) -> torch.Tensor:
        """V (n_features, n_components)."""
        return self.V

    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        """Rows (..., n_features) of codes (..., n_components)."""
        return Z @ self.V.T


class HullEndmembers(nn.Module):
    """Decoder whose endmembers are convex combinations of candidate rows.

    Parameters
    ----------
    logits : Tensor of shape (n_components, n_candidates)
        Logarithms of the combinations' weights to start from.
    candidates : Tensor of shape (n_candidates, n_features)
        The rows.
    """

    candidates: torch.Tensor

    def __init__(self, logits: torch.Tensor, candidates: torch.Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits.clone())
        self.register_buffer("candidates", candidates)

    def weights(self) -> torch.Tensor:
        """The combinations (n_components, n_candidates), rows on the simplex."""
        return torch.softmax(self.logits, dim=1)

    def endmembers(self) -> torch.Tensor:
        """V (n_features, n_components)."""
        return (self.weights() @ self.candidates).T

    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        """Rows (..., n_features) of codes (..., n_components)."""
        return Z @ self.endmembers().T


class LogRatioDecoder(nn.Module):
    """Decoder z -> b + A (log z - mean log z); its threshold is the flexible one.

    Parameters
    ----------
    A : Tensor of shape (n_features, n_components)
        Where the slopes start.
    prior_mean : Tensor of shape (n_components,)
        E log w at the collapsed state less its mean, subtracted so that b is the mean row there.
    """

    prior_mean: torch.Tensor

    def __init__(self, A: torch.Tensor, prior_mean: torch.Tensor) -> None:
        super().__init__()
        self.A = nn.Parameter(A.clone())
        self.b = nn.Parameter(torch.zeros(len(A), dtype=A.dtype))
        self.register_buffer("prior_mean", prior_mean)

    def of_log(self, log_z: torch.Tensor) -> torch.Tensor:
        """Rows of log codes."""
        ratio = log_z - log_z.mean(dim=-1, keepdim=True)
        return self.b + (ratio - self.prior_mean) @ self.A.T

    def expected_squared_error(
        self, Y: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor
    ) -> torch.Tensor:
        """E||y - f(z)||^2 (n,) from moments (n, K) of independent log w."""
        centred = self.A - self.A.mean(dim=1, keepdim=True)
        return ((Y - self.of_log(mean)) ** 2).sum(dim=1) + variance @ (centred**2).sum(dim=0)

    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        """Rows (..., n_features) of codes (..., n_components)."""
        return self.of_log(Z.clamp_min(torch.finfo(Z.dtype).tiny).log())


class SimplexMLPDecoder(nn.Module):
    """Perceptron from the simplex to rows.

    Parameters
    ----------
    n_components, n_features : int
        Widths of input and output.
    hidden_layer_sizes : sequence of int, default=(64,)
        Hidden widths.
    activation : {"relu", "tanh", "gelu", "elu"}, default="relu"
        After each hidden layer.
    """

    def __init__(
        self,
        n_components: int,
        n_features: int,
        hidden_layer_sizes: Sequence[int] = (64,),
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.layers = multilayer(n_components, hidden_layer_sizes, n_features, activation)

    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        """Rows (..., n_features) of codes (..., n_components)."""
        return self.layers(Z)


class DirichletVAE(nn.Module):
    """Amortised Dirichlet beta-VAE: rows in, expected squared error and divergence out.

    Parameters
    ----------
    encoder : nn.Module
        From standardised rows (n, D) to offsets of the posterior's parameters.
    decoder : nn.Module
        From codes (..., K) to standardised rows (..., D).
    concentration : array-like of shape (K,)
        The prior's concentrations.
    beta : float, default=1.0
        Weight of the divergence in `loss`.
    noise_variance : float, default=1.0
        sigma^2 in the standardised units.
    learn_noise : bool, default=False
        Whether sigma^2 is a parameter.
    posterior : {"dirichlet", "softmax_normal", "weibull"}, default="dirichlet"
        Family of q(z|x): one offset a component for the first, two for the others.
    sampler : {"implicit", "gamma_icdf"}, default="implicit"
        How Dirichlet codes are drawn where the decoder needs samples.
    n_mc : int, default=1
        Samples a row.
    analytic : bool, default=True
        Use the closed form of the expected error where there is one.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators.dirichlet_vae.networks import (
    ...     ConcentrationEncoder,
    ...     DirichletVAE,
    ...     LinearEndmembers,
    ... )
    >>> model = DirichletVAE(
    ...     ConcentrationEncoder(5, 3), LinearEndmembers(torch.rand(5, 3)), [1.0, 1.0, 1.0]
    ... )
    >>> error, kl = model(torch.zeros(2, 5))
    >>> error.shape, kl.shape
    (torch.Size([2]), torch.Size([2]))
    """

    encoder: Any
    decoder: Any
    posterior: Any

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        concentration: Sequence[float] | np.ndarray,
        *,
        beta: float = 1.0,
        noise_variance: float = 1.0,
        learn_noise: bool = False,
        posterior: str = "dirichlet",
        sampler: str = "implicit",
        n_mc: int = 1,
        analytic: bool = True,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.posterior = make_posterior(posterior, np.asarray(concentration, float), sampler)
        self.n_parameters = self.posterior.n_parameters * len(concentration)
        log_noise = torch.tensor(float(np.log(noise_variance)), dtype=torch.float64)
        self.log_noise = nn.Parameter(log_noise, requires_grad=learn_noise)
        self.beta = beta
        self.warmth = 1.0  # what share of beta training uses now
        self.n_mc, self.analytic = n_mc, analytic

    def posterior_parameters(self, Y: torch.Tensor) -> torch.Tensor:
        """Parameters (n, n_parameters) of standardised rows, in float64 where the device has it."""
        offset = self.encoder(Y).to(self.log_noise.dtype)
        if offset.shape != (len(Y), self.n_parameters):
            raise ValueError(
                f"encoder returns shape {tuple(offset.shape)}; allowed: (batch, parameters of the "
                f"posterior) = ({len(Y)}, {self.n_parameters})"
            )
        return self.posterior.parameters_of(offset)

    def exact_error(self, Y: torch.Tensor, theta: torch.Tensor) -> torch.Tensor | None:
        """E||y - f(z)||^2 (n,) for decoders linear in the code or its log-ratios, else None."""
        Y = Y.to(theta.dtype)
        if hasattr(self.decoder, "endmembers"):
            V = self.decoder.endmembers().to(theta.dtype)
            return self.posterior.linear_squared_error(Y, V, theta)
        if hasattr(self.decoder, "expected_squared_error"):
            moments = (
                moment.to(self.decoder.A.dtype) for moment in self.posterior.log_moments(theta)
            )
            error = self.decoder.expected_squared_error(Y.to(self.decoder.A.dtype), *moments)
            return error.to(theta.dtype)
        return None

    def sampled_error(self, Y: torch.Tensor, theta: torch.Tensor, n_samples: int) -> torch.Tensor:
        """An unbiased estimate of E||y - f(z)||^2 (n,)."""
        Z = self.posterior.codes(theta, n_samples).to(Y.dtype)
        rows = self.decoder(Z.flatten(0, 1))
        if rows.shape != (n_samples * len(Y), Y.shape[1]):
            raise ValueError(
                f"decoder returns shape {tuple(rows.shape)}; "
                f"allowed: (batch, n_features) = ({n_samples * len(Y)}, {Y.shape[1]})"
            )
        rows = rows.reshape(n_samples, *Y.shape)
        return ((Y - rows) ** 2).sum(dim=2).mean(dim=0).to(theta.dtype)

    def forward(self, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the two terms of the loss for each row.

        Parameters
        ----------
        X : Tensor of shape (n_samples, n_features)
            Standardised rows.

        Returns
        -------
        error, kl : Tensor of shape (n_samples,)
            Expected squared error and divergence from the prior.
        """
        theta = self.posterior_parameters(X)
        error = self.exact_error(X, theta) if self.analytic else None
        if error is None:
            error = self.sampled_error(X, theta, self.n_mc)
        return error, self.posterior.divergence(theta)

    def loss(
        self, error: torch.Tensor, kl: torch.Tensor, weight: torch.Tensor, n_features: int
    ) -> torch.Tensor:
        """L_beta in nats per row, averaged with weights; in training beta may be warming up."""
        noise = self.log_noise.to(error.dtype)
        rows = error / (2 * noise.exp()) + n_features / 2 * (np.log(2 * np.pi) + noise)
        rows = rows + self.beta * (self.warmth if self.training else 1.0) * kl
        weight = weight.to(rows.dtype)
        return (weight * rows).sum() / weight.sum().clamp_min(torch.finfo(rows.dtype).tiny)

    def project(self) -> None:
        """Put decoder and noise back into their sets after an optimiser step."""
        if self.log_noise.requires_grad:
            with torch.no_grad():
                self.log_noise.clamp_(min=LOG_NOISE_FLOOR)
        if hasattr(self.decoder, "project"):
            self.decoder.project()


def own_copy(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A user's module, copied and in the wanted precision."""
    return copy.deepcopy(module).to(dtype)
