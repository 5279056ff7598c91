"""Torch families of posteriors: parameters from an encoder's offsets, divergence, samples.

Zero offsets are the collapsed state of each family (see `families`). "dirichlet" has one parameter
a component, log g. The two others draw log w = loc + scale e with independent e, so that gradients
pass through; their codes are z = softmax(log w):

- "softmax_normal": e ~ N(0, 1), KL = sum_k (exp(2 r) - 1 - 2 r + o^2) / 2 with loc = mu + s o and
  scale = s exp(r);
- "weibull": exp(e) ~ Exp(1), so that w is a Weibull variable of shape 1 / scale; o is the offset of
  the logarithm of its mean, r that of log scale.

Samples of a Dirichlet law: "implicit" draws Gamma(g + 1) variables with implicit gradients
(Figurnov et al. 2018) and boosts them, ln w = ln Gamma(g + 1) sample + ln(u) / g, so that small
concentrations don't underflow; "gamma_icdf" is the approximate inverse CDF of Joo et al. (2019).
"""

import numpy as np
import torch
from scipy.stats import qmc
from torch import nn

from .families import softmax_normal_prior, weibull_prior

__all__ = [
    "SAMPLERS",
    "DirichletPosterior",
    "SoftmaxNormalPosterior",
    "WeibullPosterior",
    "dirichlet_divergence",
    "make_posterior",
    "sample_codes",
]

SAMPLERS = ("implicit", "gamma_icdf")
#: Sobol points with which means of codes without a closed form are computed.
QUADRATURE_POINTS = 512


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


def simplex(log_w: torch.Tensor) -> torch.Tensor:
    """Codes from logarithms of weights; a difference of 1e300 is as good as infinity."""
    return torch.softmax(log_w.clamp(-1e300, 1e300), dim=-1)


def sample_codes(log_g: torch.Tensor, n_samples: int, sampler: str) -> torch.Tensor:
    """Dirichlet codes (n_samples, n, K) that carry gradients to log g."""
    shape = (n_samples, *log_g.shape)
    g = log_g.exp().expand(shape)
    u = torch.rand(shape, dtype=g.dtype, device=g.device).clamp_min(torch.finfo(g.dtype).tiny)
    # exp(-log g) for 1 / g: the derivative of the quotient has 1 / g^2, which overflows.
    inverse = torch.exp(-log_g)
    if sampler == "gamma_icdf":
        return simplex((u.log() + torch.lgamma(g + 1)) * inverse)
    return simplex(torch._standard_gamma(g + 1).log() + u.log() * inverse)


class DirichletPosterior(nn.Module):
    """q = Dir(g) against Dir(a); an encoder's offsets are those of log g from log a.

    Parameters
    ----------
    a : ndarray of shape (K,)
        The prior's concentrations.
    sampler : {"implicit", "gamma_icdf"}, default="implicit"
        How codes are drawn.
    """

    n_parameters = 1
    log_a: torch.Tensor

    def __init__(self, a: np.ndarray, sampler: str = "implicit") -> None:
        super().__init__()
        if sampler not in SAMPLERS:
            raise ValueError(f"sampler={sampler!r} is not allowed; allowed: {list(SAMPLERS)}")
        self.sampler = sampler
        self.register_buffer("log_a", torch.as_tensor(np.log(a), dtype=torch.float64))
        self.lower = min(-14.0, float(self.log_a.min()) - 1)
        self.upper = max(14.0, float(self.log_a.max()) + 1)

    def parameters_of(self, offset: torch.Tensor) -> torch.Tensor:
        """log g (n, K)."""
        return (self.log_a + offset).clamp(self.lower, self.upper)

    def divergence(self, log_g: torch.Tensor) -> torch.Tensor:
        """KL(Dir(g) || Dir(a)) (n,)."""
        return dirichlet_divergence(log_g, self.log_a)

    def codes(self, log_g: torch.Tensor, n_samples: int) -> torch.Tensor:
        """Random codes (n_samples, n, K)."""
        return sample_codes(log_g, n_samples, self.sampler)

    def mean(self, log_g: torch.Tensor) -> torch.Tensor:
        """E z (n, K)."""
        return torch.softmax(log_g, dim=1)

    def linear_squared_error(
        self, Y: torch.Tensor, V: torch.Tensor, log_g: torch.Tensor
    ) -> torch.Tensor:
        """E||y - V z||^2 (n,) in closed form, through V^T V and V^T y: no (n, D) array is made."""
        m = self.mean(log_g)
        G = V.T @ V
        square = ((m @ G) * m).sum(dim=1)
        shrink = torch.sigmoid(-torch.logsumexp(log_g, dim=1))
        error = (Y * Y).sum(dim=1) - 2 * ((Y @ V) * m).sum(dim=1) + square
        return error + (m @ G.diagonal() - square) * shrink

    def log_moments(self, log_g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance (n, K) of independent log w whose differences are those of log z."""
        g = log_g.exp()
        return torch.digamma(g), torch.polygamma(1, g)


class LocationScalePosterior(nn.Module):
    """Base of the families log w = loc + scale e, z = softmax(log w), with independent e."""

    n_parameters = 2
    lower: torch.Tensor
    upper: torch.Tensor
    points: torch.Tensor
    #: Mean and variance of e.
    noise_moments: tuple[float, float]

    def __init__(self, K: int) -> None:
        super().__init__()
        points = qmc.Sobol(K, rng=0).random(QUADRATURE_POINTS)
        points = torch.as_tensor(np.clip(points, 2.0**-33, 1 - 2.0**-33))
        self.register_buffer("points", self.noise(points))

    def noise(self, u: torch.Tensor) -> torch.Tensor:
        """e from uniform numbers."""
        raise NotImplementedError

    def locate(self, theta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """loc and scale (n, K) of log w."""
        raise NotImplementedError

    def noise_log_density(self, e: torch.Tensor) -> torch.Tensor:
        """Logarithm of the density of e, up to a constant."""
        raise NotImplementedError

    def divergence_parts(self, theta: torch.Tensor) -> torch.Tensor:
        """Divergence of each component's law (n, K); they sum to the whole."""
        raise NotImplementedError

    def parameters_of(self, offset: torch.Tensor) -> torch.Tensor:
        """Offsets (n, 2 K) between their bounds."""
        return torch.minimum(torch.maximum(offset, self.lower), self.upper)

    def divergence(self, theta: torch.Tensor) -> torch.Tensor:
        """Divergence (n,)."""
        return self.divergence_parts(theta).sum(dim=1)

    def log_weights(self, theta: torch.Tensor, n_samples: int) -> torch.Tensor:
        """Random log w (n_samples, n, K)."""
        loc, scale = self.locate(theta)
        u = torch.rand((n_samples, *loc.shape), dtype=loc.dtype, device=loc.device)
        return loc + scale * self.noise(u.clamp(2.0**-53, 1 - 2.0**-53))

    def codes(self, theta: torch.Tensor, n_samples: int) -> torch.Tensor:
        """Random codes (n_samples, n, K)."""
        return simplex(self.log_weights(theta, n_samples))

    def quadrature_codes(self, theta: torch.Tensor) -> torch.Tensor:
        """Codes (QUADRATURE_POINTS, n, K) at fixed points: their means are those of the law."""
        loc, scale = self.locate(theta)
        return simplex(loc + scale * self.points[:, None])

    def mean(self, theta: torch.Tensor) -> torch.Tensor:
        """E z (n, K), by quadrature to about 1e-3."""
        return self.quadrature_codes(theta).mean(dim=0)

    def linear_squared_error(
        self, Y: torch.Tensor, V: torch.Tensor, theta: torch.Tensor
    ) -> torch.Tensor:
        """E||y - V z||^2 (n,) by quadrature."""
        Z = self.quadrature_codes(theta)
        second = torch.einsum("snk,kl,snl->n", Z, V.T @ V, Z) / len(Z)
        mean = Z.mean(dim=0)
        return ((Y - mean @ V.T) ** 2).sum(dim=1) + second - ((mean @ V.T) ** 2).sum(dim=1)

    def log_moments(self, theta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance (n, K) of log w."""
        loc, scale = self.locate(theta)
        mean, variance = self.noise_moments
        return loc + scale * mean, scale**2 * variance

    def information(self, theta: torch.Tensor, n_samples: int) -> float:
        """Estimate of the information between rows and log w, which bounds that of z from above."""
        n = len(theta)
        loc, scale = self.locate(theta)
        log_w = self.log_weights(theta, n_samples)
        total = 0.0
        for i in range(n):
            e = (log_w[:, i, None] - loc) / scale  # (n_samples, n, K)
            density = (self.noise_log_density(e) - scale.log()).sum(dim=2)
            ratio = torch.logsumexp(density - density[:, i : i + 1], dim=1) - np.log(n)
            total -= float(ratio.sum())
        return max(total / (n * n_samples), 0.0)


class SoftmaxNormalPosterior(LocationScalePosterior):
    """z = softmax(h), h independent normal variables; the prior is one of these laws.

    Parameters
    ----------
    a : ndarray of shape (K,)
        Concentrations of the Dirichlet law whose Laplace approximation is the prior.
    """

    noise_moments = (0.0, 1.0)
    prior_mean: torch.Tensor
    prior_scale: torch.Tensor

    def __init__(self, a: np.ndarray) -> None:
        super().__init__(len(a))
        mean, scale = softmax_normal_prior(a)
        self.register_buffer("prior_mean", torch.as_tensor(mean))
        self.register_buffer("prior_scale", torch.as_tensor(scale))
        bound = torch.as_tensor(np.repeat([100.0, 14.0], len(a)))
        self.register_buffer("lower", -bound)
        self.register_buffer("upper", bound)

    def noise(self, u: torch.Tensor) -> torch.Tensor:
        return torch.special.ndtri(u)

    def noise_log_density(self, e: torch.Tensor) -> torch.Tensor:
        return -(e**2) / 2

    def locate(self, theta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        o, r = theta.chunk(2, dim=1)
        return self.prior_mean + self.prior_scale * o, self.prior_scale * r.exp()

    def divergence_parts(self, theta: torch.Tensor) -> torch.Tensor:
        o, r = theta.chunk(2, dim=1)
        return (torch.expm1(2 * r) - 2 * r + o**2) / 2


class WeibullPosterior(LocationScalePosterior):
    """z = w / sum w, w independent Weibull variables, against w ~ Gamma(a, 1).

    Parameters
    ----------
    a : ndarray of shape (K,)
        The prior's concentrations.
    """

    noise_moments = (-float(np.euler_gamma), np.pi**2 / 6)
    log_a: torch.Tensor
    log_t: torch.Tensor
    floor: torch.Tensor

    def __init__(self, a: np.ndarray) -> None:
        super().__init__(len(a))
        log_t, floor = weibull_prior(a)
        self.register_buffer("log_a", torch.as_tensor(np.log(a)))
        self.register_buffer("log_t", torch.as_tensor(log_t))
        self.register_buffer("floor", torch.as_tensor(floor))
        wide = np.full(len(a), 14.0)
        lower, upper = np.minimum(-wide, -wide - log_t), np.maximum(wide, wide - np.log(a))
        self.register_buffer("lower", torch.as_tensor(np.concatenate([-wide, lower])))
        self.register_buffer("upper", torch.as_tensor(np.concatenate([upper, wide])))

    def noise(self, u: torch.Tensor) -> torch.Tensor:
        return torch.log(-torch.log(u))

    def noise_log_density(self, e: torch.Tensor) -> torch.Tensor:
        return e - e.clamp_max(700.0).exp()

    def locate(self, theta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        o, r = theta.chunk(2, dim=1)
        t = (self.log_t + r).exp()
        return self.log_a + o - torch.lgamma(1 + t), t

    def divergence_parts(self, theta: torch.Tensor) -> torch.Tensor:
        o, r = theta.chunk(2, dim=1)
        t, t_prior = (self.log_t + r).exp(), self.log_t.exp()
        rise = torch.lgamma(1 + t) - torch.lgamma(1 + t_prior) + np.euler_gamma * (t - t_prior)
        return self.floor + self.log_a.exp() * (torch.expm1(o) - o + rise) - r


def make_posterior(
    posterior: str, a: np.ndarray, sampler: str
) -> DirichletPosterior | LocationScalePosterior:
    """The family of this name."""
    if posterior == "dirichlet":
        return DirichletPosterior(a, sampler)
    return SoftmaxNormalPosterior(a) if posterior == "softmax_normal" else WeibullPosterior(a)
