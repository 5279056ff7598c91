"""The amortised model's fit: networks in standardised units, trained through skorch."""

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split

from equipoise.devices import forked_seed, resolve_device, resolve_dtype

from . import networks, training
from .choices import endmember_bounds, has_closed_form
from .decoders import HullDecoder, hull_candidates
from .fitting import Problem, starting_endmembers
from .posteriors import make_posterior

if TYPE_CHECKING:
    from .dirichlet_vae import DirichletBetaVAE

__all__ = ["fit_adam", "train_encoder"]


def make_encoder(model: "DirichletBetaVAE", D: int, K: int, dtype: Any) -> Any:
    """The encoder network that the parameters describe."""
    if not isinstance(model.encoder, str):
        return networks.own_copy(model.encoder, dtype)
    sizes = () if model.encoder == "linear" else tuple(model.hidden_layer_sizes)
    outputs = K if model.posterior == "dirichlet" else 2 * K
    return networks.ConcentrationEncoder(D, outputs, sizes, model.activation).to(dtype)


def make_decoder(
    model: "DirichletBetaVAE", problem: Problem, warm: bool, dtype: Any
) -> tuple[Any, np.ndarray | None]:
    """The decoder in standardised units, and the rows that an archetypal one may combine."""
    factor = 1 / problem.scale
    K = len(problem.a)

    def tensor(array: np.ndarray) -> Any:
        return torch.as_tensor(np.ascontiguousarray(array), dtype=dtype)

    if not isinstance(model.decoder, str):
        return networks.own_copy(model.decoder, dtype), None
    if model.decoder == "mlp":
        D = problem.spectrum.n_features
        sizes = tuple(model.hidden_layer_sizes)
        return networks.SimplexMLPDecoder(K, D, sizes, model.activation).to(dtype), None
    V = starting_endmembers(model, problem, warm)
    if model.decoder == "logratio":
        law = make_posterior(model.posterior, problem.a, model.sampler)
        start = law.parameters_of(torch.zeros(1, law.n_parameters * K, dtype=torch.float64))
        mean, variance = (moment[0].numpy() for moment in law.log_moments(start))
        if not variance.max() < 1e280:
            raise ValueError(
                f"decoder='logratio' can't hold the log-ratios of concentration "
                f"{problem.a.min():.3g}: their variance overflows; allowed: above 1e-140"
            )
        centre = mean - mean.mean()
        # A unit step of a log-ratio is about a standard deviation of it at the collapsed state.
        spread = 1 + np.sqrt(variance.mean())
        A = (V - V.mean(axis=1, keepdims=True)) * factor / spread
        return networks.LogRatioDecoder(tensor(A), tensor(centre)), None
    if model.decoder == "archetypal":
        rows = hull_candidates(problem.Y, K)
        weights = HullDecoder(problem.Y[rows].astype(np.float64)).weights(V)
        logits = np.log(0.99 * weights + 0.01 / len(rows))
        return networks.HullEndmembers(tensor(logits), tensor(problem.Y[rows] * factor)), rows
    bounds = endmember_bounds(model.decoder, problem.spectrum.mean)
    cuts = [] if bounds is None else [tensor(bound * factor) for bound in bounds]
    return networks.LinearEndmembers(tensor(V * factor), *cuts), None


def fit_adam(
    model: "DirichletBetaVAE", problem: Problem, warm: bool, epochs: int | None
) -> dict[str, Any]:
    """Train the amortised model; `epochs` is 1 in `partial_fit`, None for all of `max_iter`."""
    device, dtype = resolve_device(model.device), resolve_dtype(model.dtype)
    D, K = len(problem.spectrum.mean), len(problem.a)
    factor = 1 / problem.scale
    batch_seed, split_seed = (int(s) for s in problem.rng.randint(2**31 - 1, size=2))
    plan = training.TrainingPlan(
        1 if epochs else model.max_iter,
        model.batch_size,
        model.lr,
        model.decoder_lr,
        model.weight_decay,
        int(np.ceil(model.beta_warmup * model.max_iter)) if not epochs else 0,
        device,
        model.verbose,
    )
    rows = None
    with forked_seed(problem.rng, device):
        if epochs and warm:
            net = copy.deepcopy(model.net_)
        else:
            decoder, rows = make_decoder(model, problem, warm, dtype)
            if warm:
                encoder = copy.deepcopy(model.net_.module_.encoder)
                if not hasattr(decoder, "endmembers"):
                    decoder = copy.deepcopy(model.net_.module_.decoder)
            else:
                encoder = make_encoder(model, D, K, dtype)
            module = networks.DirichletVAE(
                encoder,
                decoder,
                problem.a,
                beta=problem.beta,
                noise_variance=problem.noise_variance * factor**2,
                learn_noise=problem.learn_noise,
                posterior=model.posterior,
                sampler=model.sampler,
                n_mc=model.n_mc,
                analytic=model.objective != "sampled" and has_closed_form(model),
            )
            net = training.make_net(module, plan, batch_seed, list(model.callbacks or []))
        if not net.initialized_:
            net.initialize()
        Y = problem.Y * factor
        chosen, valid = np.arange(len(Y)), None
        if model.early_stopping and epochs is None:
            chosen, held = train_test_split(
                chosen, test_size=model.validation_fraction, random_state=split_seed
            )
            valid = training.tensors(Y[held], problem.weight[held], dtype)
        data = training.tensors(Y[chosen], problem.weight[chosen] * len(Y), dtype)
        run = model.max_iter if epochs is None else epochs
        training.train(net, data, valid, run, model.n_iter_no_change, model.verbose)
    # L_beta in the data's units: the densities of scaled rows differ by D log(factor).
    curve = [float(loss) - D * np.log(factor) for loss in net.history[:, "train_loss"]]
    check_finite(curve, model)
    module = net.module_
    learned = {
        "net_": net,
        "noise_variance_": float(module.log_noise.detach().exp()) / factor**2,
        "loss_curve_": curve,
        "n_iter_": len(curve),
        "converged_": settled(curve, model.n_iter_no_change, model.tol),
    }
    if hasattr(module.decoder, "endmembers"):
        V = module.decoder.endmembers().detach().cpu().numpy().astype(np.float64) / factor
        learned["components_"] = V.T + problem.spectrum.mean
        if model.decoder in ("nonnegative", "box"):
            upper = 1.0 if model.decoder == "box" else np.inf
            learned["components_"] = np.clip(learned["components_"], 0.0, upper)
    if hasattr(module.decoder, "weights"):
        learned["archetype_weights_"] = module.decoder.weights().detach().cpu().double().numpy()
        learned["candidates_"] = rows
    return learned


def train_encoder(
    model: "DirichletBetaVAE", X: np.ndarray, share: np.ndarray, scale: float
) -> dict[str, Any]:
    """Learned attributes of an encoder trained on rows X for the model's own endmembers."""
    device, dtype = resolve_device(model.device), resolve_dtype(model.dtype)
    Y = (X - model.mean_).astype(model.dtype, copy=False) / scale
    V = (model.components_ - model.mean_).T / scale
    D, K = V.shape
    batch_seed = int(model._random.randint(2**31 - 1))
    plan = training.TrainingPlan(
        model.max_iter,
        model.batch_size,
        model.lr,
        model.decoder_lr,
        model.weight_decay,
        0,
        device,
        model.verbose,
    )
    with forked_seed(model._random, device):
        decoder = networks.LinearEndmembers(torch.as_tensor(V, dtype=dtype)).requires_grad_(False)
        module = networks.DirichletVAE(
            make_encoder(model, D, K, dtype),
            decoder,
            model.concentration_,
            beta=model.beta_,
            noise_variance=model.noise_variance_ / scale**2,
        )
        net = training.make_net(module, plan, batch_seed, list(model.callbacks or []))
        net.initialize()
        data = training.tensors(Y, share * len(Y), dtype)
        training.train(net, data, None, model.max_iter, model.n_iter_no_change, model.verbose)
    curve = [float(loss) + D * np.log(scale) for loss in net.history[:, "train_loss"]]
    check_finite(curve, model)
    return {
        "net_": net,
        "loss_curve_": curve,
        "n_iter_": len(curve),
        "converged_": settled(curve, model.n_iter_no_change, model.tol),
    }


def check_finite(curve: list[float], model: "DirichletBetaVAE") -> None:
    """ValueError where training diverged."""
    if not np.isfinite(curve).all():
        raise ValueError(
            f"training diverged: the loss became infinite or NaN with lr={model.lr} and "
            f"decoder_lr={model.decoder_lr}; lower them"
        )


def settled(curve: list[float], patience: int, tol: float) -> bool:
    """Whether the last epochs' losses moved less than they scatter, or less than tol in all."""
    if len(curve) < 2 * patience:
        return False
    before, after = np.array(curve[-2 * patience : -patience]), np.array(curve[-patience:])
    scatter = np.sqrt((before.var() + after.var()) / patience)
    return bool(before.mean() - after.mean() <= max(2 * scatter, tol * abs(after.mean())))
