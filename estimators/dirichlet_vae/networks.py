"""Torch modules of the amortised model: encoder, decoders, and the loss's two terms.

The encoder emits offsets of log g from log alpha, so that a network of zeros is the prior. For
decoders linear in z the expected squared error is exact; for a decoder linear in the log-ratios c =
log z - mean(log z) as well, through E log z_k = psi(g_k) - psi(g_0) and Cov(log z) = diag(psi'(g))
- psi'(g_0). Other decoders see samples: "implicit" draws Gamma(g + 1) variables with implicit
gradients (Figurnov et al. 2018) and boosts them, ln w = ln Gamma(g + 1) sample + ln(u) / g, so that
small concentrations don't underflow; "gamma_icdf" is the approximate inverse CDF of Joo et al.
(2019).
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = [
    "ConcentrationEncoder",
    "DirichletVAE",
    "HullEndmembers",
    "LinearEndmembers",
    "LogRatioDecoder",
    "SimplexMLPDecoder",
]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "elu": nn.ELU,
}
SAMPLERS = ("implicit", "gamma_icdf")


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
    """Perceptron from standardised rows to offsets of log g from the prior's log concentration.

    Parameters
    ----------
    n_features, n_components : int
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
        n_components: int,
        hidden_layer_sizes: Sequence[int] = (64,),
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.layers = multilayer(n_features, hidden_layer_sizes, n_components, activation)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Offsets (n, n_components) for rows (n, n_features)."""
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
        E log z under the prior, subtracted so that b is the mean at collapse.
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

    def expected_squared_error(self, Y: torch.Tensor, log_g: torch.Tensor) -> torch.Tensor:
        """E||y - f(z)||^2 (n,) in closed form."""
        g = log_g.exp()
        mean = self.of_log(torch.digamma(g))
        centred = self.A - self.A.mean(dim=1, keepdim=True)
        spread = torch.polygamma(1, g) @ (centred**2).sum(dim=0)
        return ((Y - mean) ** 2).sum(dim=1) + spread

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


def dirichlet_divergence(log_g: torch.Tensor, log_a: torch.Tensor) -> torch.Tensor:
    """KL(Dir(g) || Dir(a)) (n,), with finite value and gradient down to concentrations of 1e-160.

    lnGamma(x) = lnGamma(x + 1) - ln x turns each Bregman divergence of lnGamma into a smooth part
    at x + 1 and a / g - 1 - ln(a / g).
    """

    def bregman(log_a: torch.Tensor, log_g: torch.Tensor) -> torch.Tensor:
        a, g = log_a.exp(), log_g.exp()
        smooth = torch.lgamma(a + 1) - torch.lgamma(g + 1) - (a - g) * torch.digamma(g + 1)
        return smooth + torch.exp(log_a - log_g) - 1 - (log_a - log_g)

    parts = bregman(log_a, log_g).sum(dim=-1)
    return parts - bregman(torch.logsumexp(log_a, -1), torch.logsumexp(log_g, -1))


def linear_squared_error(Y: torch.Tensor, V: torch.Tensor, log_g: torch.Tensor) -> torch.Tensor:
    """E||y - V z||^2 (n,) in closed form."""
    M = torch.softmax(log_g, dim=1)
    mean = M @ V.T
    spread = M @ (V**2).sum(dim=0) - (mean**2).sum(dim=1)
    return ((Y - mean) ** 2).sum(dim=1) + spread * torch.sigmoid(-torch.logsumexp(log_g, dim=1))


def sample_codes(log_g: torch.Tensor, n_samples: int, sampler: str) -> torch.Tensor:
    """Codes (n_samples, n, K) that carry gradients to log g."""
    shape = (n_samples, *log_g.shape)
    g = log_g.exp().expand(shape)
    u = torch.rand(shape, dtype=g.dtype, device=g.device).clamp_min(torch.finfo(g.dtype).tiny)
    # exp(-log g) for 1 / g: the derivative of the quotient has 1 / g^2, which overflows.
    inverse = torch.exp(-log_g)
    if sampler == "gamma_icdf":
        log_w = (u.log() + torch.lgamma(g + 1)) * inverse
    else:
        log_w = torch._standard_gamma(g + 1).log() + u.log() * inverse
    # A difference of 1e300 is as good as infinity, which would make NaN.
    return torch.softmax(log_w.clamp(-1e300, 1e300), dim=-1)


class DirichletVAE(nn.Module):
    """Amortised Dirichlet beta-VAE: rows in, expected squared error and divergence out.

    Parameters
    ----------
    encoder : nn.Module
        From standardised rows (n, D) to offsets of log g (n, K).
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
    sampler : {"implicit", "gamma_icdf"}, default="implicit"
        How codes are drawn where the decoder needs samples.
    n_mc : int, default=1
        Samples a row.
    analytic : bool, default=True
        Use the closed form of the expected error where the decoder has one.

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

    log_a: torch.Tensor
    encoder: Any
    decoder: Any

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        concentration: Sequence[float] | np.ndarray,
        *,
        beta: float = 1.0,
        noise_variance: float = 1.0,
        learn_noise: bool = False,
        sampler: str = "implicit",
        n_mc: int = 1,
        analytic: bool = True,
    ) -> None:
        super().__init__()
        if sampler not in SAMPLERS:
            raise ValueError(f"sampler={sampler!r} is not allowed; allowed: {list(SAMPLERS)}")
        self.encoder, self.decoder = encoder, decoder
        log_a = torch.as_tensor(np.log(concentration), dtype=torch.float64)
        self.register_buffer("log_a", log_a)
        self.lower = min(-14.0, float(log_a.min()) - 1)
        self.upper = max(14.0, float(log_a.max()) + 1)
        log_noise = torch.tensor(float(np.log(noise_variance)), dtype=torch.float64)
        self.log_noise = nn.Parameter(log_noise, requires_grad=learn_noise)
        self.beta = beta
        self.sampler, self.n_mc, self.analytic = sampler, n_mc, analytic

    def log_concentration(self, Y: torch.Tensor) -> torch.Tensor:
        """log g (n, K) of standardised rows, in float64 where the device has it."""
        offset = self.encoder(Y).to(self.log_a.dtype)
        if offset.shape != (len(Y), len(self.log_a)):
            raise ValueError(
                f"encoder returns shape {tuple(offset.shape)}; "
                f"allowed: (batch, n_components) = ({len(Y)}, {len(self.log_a)})"
            )
        return (self.log_a + offset).clamp(self.lower, self.upper)

    def squared_error(self, Y: torch.Tensor, log_g: torch.Tensor) -> torch.Tensor:
        """E||y - f(z)||^2 (n,), exact or by samples."""
        if self.analytic and hasattr(self.decoder, "endmembers"):
            V = self.decoder.endmembers().to(log_g.dtype)
            return linear_squared_error(Y.to(log_g.dtype), V, log_g)
        if self.analytic and hasattr(self.decoder, "expected_squared_error"):
            return self.decoder.expected_squared_error(Y, log_g.to(Y.dtype)).to(log_g.dtype)
        Z = sample_codes(log_g, self.n_mc, self.sampler).to(Y.dtype)
        rows = self.decoder(Z.flatten(0, 1))
        if rows.shape != (self.n_mc * len(Y), Y.shape[1]):
            raise ValueError(
                f"decoder returns shape {tuple(rows.shape)}; "
                f"allowed: (batch, n_features) = ({self.n_mc * len(Y)}, {Y.shape[1]})"
            )
        rows = rows.reshape(self.n_mc, *Y.shape)
        return ((Y - rows) ** 2).sum(dim=2).mean(dim=0).to(log_g.dtype)

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
        log_g = self.log_concentration(X)
        return self.squared_error(X, log_g), dirichlet_divergence(log_g, self.log_a)

    def loss(
        self, error: torch.Tensor, kl: torch.Tensor, weight: torch.Tensor, n_features: int
    ) -> torch.Tensor:
        """L_beta in nats per row, averaged with weights."""
        noise = self.log_noise.to(error.dtype)
        rows = error / (2 * noise.exp()) + n_features / 2 * (np.log(2 * np.pi) + noise)
        rows = rows + self.beta * kl
        weight = weight.to(rows.dtype)
        return (weight * rows).sum() / weight.sum().clamp_min(torch.finfo(rows.dtype).tiny)

    def project(self) -> None:
        """Put the decoder back into its set after an optimiser step."""
        if hasattr(self.decoder, "project"):
            self.decoder.project()


def own_copy(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A user's module, copied and in the wanted precision."""
    return copy.deepcopy(module).to(dtype)
