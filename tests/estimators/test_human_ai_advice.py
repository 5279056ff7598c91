"""Learned advice: the layer against the fitted model, numerical gradients, and its purpose."""

import pickle

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import expit

from equipoise.datasets import make_human_ai_trials
from equipoise.estimators import HumanAITeamModel, TeamDecision


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"overlap_belief": 0.3, "lapse": 0.05},
        {"random_effects": "trust+bias", "n_quad": 5},
    ],
)
def test_layer_is_the_fitted_model(options):
    data = make_human_ai_trials(40, 30, trust=0.4, trust_sd=0.6, random_state=0)
    model = HumanAITeamModel(n_boot=2, **options)
    model.fit(data.X, data.y, y_true=data.y_true, groups=data.groups)
    team = TeamDecision.from_model(model)
    p = team(*torch.from_numpy(data.X).T)
    np.testing.assert_allclose(p.numpy(), model.predict_proba(data.X)[:, 1], atol=1e-12)
    twin = pickle.loads(pickle.dumps(team))
    assert torch.equal(twin(*torch.from_numpy(data.X).T), p)


def test_gradients_are_differences():
    team = TeamDecision(
        trust=0.5, overlap_belief=0.2, relative_capability=1.5, lapse=0.1, trust_sd=0.7, bias_sd=0.3
    )
    inputs = torch.randn(2, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    human, advice = inputs.requires_grad_()
    assert torch.autograd.gradcheck(team, (human.detach().requires_grad_(), advice.detach()))
    assert torch.autograd.gradcheck(team, (human.detach(), advice.detach().requires_grad_()))


def test_training_finds_the_advice_that_serves_best():
    """One parameter, the loudness of the advice: gradient ascent ends where a search does."""
    data = make_human_ai_trials(200, 20, trust=0.25, overlap=0.2, random_state=0)
    lh, la = data.X.T
    side = np.where(data.y_true == 1, 1.0, -1.0)

    def accuracy(c):
        return expit(side * (lh + 0.25 * c * la)).mean()

    best = minimize_scalar(lambda c: -accuracy(c), bounds=(0, 200), method="bounded").x
    team = TeamDecision(trust=0.25)
    louder = torch.ones((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([louder], max_iter=200, line_search_fn="strong_wolfe")
    human, advice = torch.from_numpy(data.X).T
    truth = torch.from_numpy(data.y_true)

    def closure():
        optimiser.zero_grad()
        loss = -team.accuracy(human, louder * advice, truth).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    assert accuracy(louder.item()) == pytest.approx(accuracy(best), abs=1e-7)
    assert accuracy(louder.item()) > accuracy(1.0) + 0.01
    assert louder.item() > 1


def test_refusals():
    for name, value in [
        ("trust", -1.0),
        ("noise_scale", 0.0),
        ("lapse", 1.0),
        ("overlap_belief", 1.0),
        ("relative_capability", 0.0),
        ("trust_sd", np.nan),
        ("n_quad", 0),
    ]:
        with pytest.raises(ValueError, match=f"{name}: got"):
            TeamDecision(**{name: value})
    data = make_human_ai_trials(20, 20, recommendation="binary", random_state=0)
    model = HumanAITeamModel(recommendation="binary", n_boot=2)
    with pytest.raises(ValueError, match="a side has no gradient"):
        TeamDecision.from_model(model.fit(data.X, data.y, y_true=data.y_true))
