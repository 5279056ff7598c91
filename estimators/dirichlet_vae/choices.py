"""What "auto" means, and which parameters go together."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .families import FamilyFacts
from .spectrum import DataSpectrum
from .threshold import threshold_of

if TYPE_CHECKING:
    from .dirichlet_vae import DirichletBetaVAE

__all__ = [
    "LINEAR_DECODERS",
    "check_modules",
    "endmember_bounds",
    "has_closed_form",
    "noise_floor",
    "resolve_beta",
    "resolve_init",
    "resolve_noise",
    "resolve_solver",
    "thresholds_of",
]

LINEAR_DECODERS = ("linear", "nonnegative", "box", "archetypal")
DECODERS = (*LINEAR_DECODERS, "logratio", "mlp")
ENCODERS = ("auto", "linear", "mlp", "none")
#: Largest number of rows for which "auto" takes variational EM.
VEM_ROWS = 100_000


def is_named(value: Any, *names: str) -> bool:
    """Whether a parameter that may be a module is one of these names."""
    return isinstance(value, str) and value in names


def check_modules(model: "DirichletBetaVAE") -> None:
    """Decoder and encoder are known names, else torch modules; objective and sampler fit them."""
    for name, allowed in (("decoder", DECODERS), ("encoder", ENCODERS)):
        value = getattr(model, name)
        if is_named(value, *allowed):
            continue
        if not isinstance(value, str):
            from torch import nn

            if isinstance(value, nn.Module):
                continue
        raise ValueError(
            f"{name}={value!r} is not allowed; allowed: {list(allowed)} or a torch nn.Module"
        )
    if model.objective == "analytic" and not has_closed_form(model):
        raise ValueError(
            f"objective='analytic' has no closed form for decoder={model.decoder!r} with "
            f"posterior={model.posterior!r}; allowed: 'auto', 'sampled'"
        )
    if model.posterior != "dirichlet" and model.sampler != "implicit":
        raise ValueError(
            f"sampler={model.sampler!r} draws Dirichlet codes, but posterior={model.posterior!r} "
            "has its own; allowed with it: 'implicit'"
        )


def has_closed_form(model: "DirichletBetaVAE") -> bool:
    """Whether the expected error needs no samples."""
    linear = is_named(model.decoder, *LINEAR_DECODERS) and model.posterior == "dirichlet"
    return linear or is_named(model.decoder, "logratio")


def resolve_solver(model: "DirichletBetaVAE", n_samples: int) -> str:
    """ "vem" or "adam"; ValueError where "vem" is asked for and something else needs a network."""
    needs_network = {
        f"decoder={model.decoder!r}": not is_named(model.decoder, *LINEAR_DECODERS),
        f"encoder={model.encoder!r}": not is_named(model.encoder, "auto", "none"),
        f"posterior={model.posterior!r}": model.posterior != "dirichlet",
        "objective='sampled'": model.objective == "sampled",
        "callbacks": bool(model.callbacks),
        "early_stopping=True": model.early_stopping,
        f"beta_warmup={model.beta_warmup!r}": model.beta_warmup > 0,
        f"device={model.device!r}": str(model.device) != "cpu",
    }
    reasons = [name for name, applies in needs_network.items() if applies]
    if model.solver == "vem":
        if reasons:
            raise ValueError(
                f"solver='vem' has no network: {', '.join(reasons)} can't be used; "
                "allowed with it: solver='adam'"
            )
        return "vem"
    if is_named(model.encoder, "none"):
        if model.solver == "adam" or reasons:
            raise ValueError(
                f"encoder='none' is variational EM's, but {', '.join(reasons) or 'solver=adam'} "
                "trains an encoder; allowed with it: 'auto', 'linear', 'mlp' or a module"
            )
        return "vem"
    if model.solver == "adam":
        return "adam"
    return "adam" if reasons or n_samples > VEM_ROWS else "vem"


def noise_floor(spectrum: DataSpectrum) -> float:
    """The least noise variance that is believed: 1e-6 tr(S) / D."""
    return 1e-6 * spectrum.total_variance / spectrum.n_features


def resolve_noise(noise_variance: Any, K: int, spectrum: DataSpectrum) -> float:
    """sigma^2 where training starts: given, or the mean eigenvalue beyond the first K - 1."""
    if not isinstance(noise_variance, str):
        return float(noise_variance)
    if spectrum.total_variance == 0:
        raise ValueError(
            f"noise_variance={noise_variance!r} can't be found: the data have no variance; "
            "allowed: a positive number"
        )
    if noise_variance == "learned":
        return spectrum.total_variance / spectrum.n_features
    left = spectrum.n_features - (K - 1)
    rest = spectrum.total_variance - float(spectrum.eigenvalues[: K - 1].sum())
    floor = noise_floor(spectrum)
    if left <= 0 or rest / left < floor:
        warnings.warn(
            f"noise_variance='auto' finds no noise beyond {K - 1} directions and takes the floor "
            f"{floor:.3g}; scores are then huge and can't be compared with other noise variances",
            UserWarning,
            stacklevel=4,
        )
        return floor
    return rest / left


def endmember_bounds(decoder: Any, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Bounds of the centred endmembers; ValueError where the mean itself is outside."""
    if not is_named(decoder, "nonnegative", "box"):
        return None
    upper = np.full(len(mean), 1.0 if decoder == "box" else np.inf)
    slack = 1e-12
    if (mean < -slack).any() or (mean > upper + slack).any():
        worst = int(np.argmax(np.maximum(-mean, mean - upper)))
        allowed = "[0, 1]" if decoder == "box" else "[0, inf)"
        raise ValueError(
            f"decoder={decoder!r} keeps endmembers in {allowed}, but feature {worst} of X has the "
            f"mean {mean[worst]:.4g}: scale X, or take decoder='linear'"
        )
    return np.minimum(-mean, 0.0), np.maximum(upper - mean, 0.0)


def resolve_init(model: "DirichletBetaVAE", mean: np.ndarray, K: int) -> str | np.ndarray:
    """The way endmembers start; an array is checked and centred."""
    if isinstance(model.init, str):
        if model.init != "auto":
            return model.init
        return "vca" if is_named(model.decoder, "nonnegative", "box") else "data"
    init = np.asarray(model.init, dtype=np.float64)
    if init.shape != (K, len(mean)) or not np.isfinite(init).all():
        raise ValueError(
            f"init has shape {init.shape}; allowed: finite endmembers of shape "
            f"(n_components, n_features) = ({K}, {len(mean)})"
        )
    return init - mean


def thresholds_of(
    decoder: Any, spectrum: DataSpectrum, family: FamilyFacts, noise: float | str
) -> tuple[float, float]:
    """Threshold that "auto" refers to, and the one above which an active state is metastable."""
    flexible = float(threshold_of(spectrum, family, noise, "flexible", None))
    if is_named(decoder, "logratio"):
        exact = flexible / family.flexible_efficiency * family.logratio_efficiency
        return exact, exact
    local = float(threshold_of(spectrum, family, noise, "local", None))
    return local, local if is_named(decoder, *LINEAR_DECODERS) else flexible


def resolve_beta(model: "DirichletBetaVAE", beta_c: float, ceiling: float) -> float:
    """Beta itself, or the asked multiple of the threshold."""
    if model.beta != "auto":
        return float(model.beta)
    if beta_c == 0:
        raise ValueError(
            "beta='auto' is a multiple of beta_c, which is 0: the data have no variance; "
            "allowed for such data: a number"
        )
    if beta_c < ceiling:
        warnings.warn(
            f"beta='auto' takes the threshold of a linear decoder; that of "
            f"decoder={model.decoder!r} lies between it and {ceiling:.3g}, so that beta is "
            f"between {beta_c / ceiling * model.beta_ratio:.3g} and {model.beta_ratio:.3g} times "
            "the true one",
            UserWarning,
            stacklevel=5,
        )
    return float(model.beta_ratio) * beta_c
