"""Every model that PKeXShapleyExplainer opens is reproduced, or refused with the reason."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as gp
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

from equipoise.explainers import (
    CallableFactor,
    Chi2Factor,
    HammingFactor,
    LaplacianFactor,
    Matern1DFactor,
    PeriodicFactor,
    PKeXShapleyExplainer,
    ProductKernel,
    RBFFactor,
)
from equipoise.testing import check_shapley_axioms

pytestmark = pytest.mark.filterwarnings("ignore:The base value of removal='identity':UserWarning")


def total(explanation):
    return explanation.base_values + explanation.values.sum(axis=1)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X[:200]), y[:200]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["red", "rose", "white"])[y]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X[:200]), y[:200]


@pytest.mark.parametrize("removal", ["identity", "interventional"])
def test_nu_machines(diabetes, cancer, wine, removal):
    options = {"removal": removal, "reference": None if removal == "identity" else 8}
    X, y = diabetes
    model = NuSVR(C=50).fit(X, y)
    explanation = PKeXShapleyExplainer(model, **options).fit(X).explain(X[:5])
    assert_allclose(total(explanation), model.predict(X[:5]), rtol=1e-11)
    X, y = cancer
    model = NuSVC(nu=0.2).fit(X, y)
    explanation = PKeXShapleyExplainer(model, **options).fit(X).explain(X[:5])
    assert_allclose(total(explanation), model.decision_function(X[:5]), atol=1e-10)
    X, y = wine
    model = NuSVC(nu=0.2, decision_function_shape="ovo").fit(X, y)
    explanation = PKeXShapleyExplainer(model, **options).fit(X).explain(X[::30])
    assert_allclose(total(explanation), model.decision_function(X[::30]), atol=1e-10)
    assert explanation.output_names == ["red vs rose", "red vs white", "rose vs white"]


def test_one_class_machine(cancer):
    X, _ = cancer
    model = OneClassSVM(nu=0.2).fit(X)
    decision = PKeXShapleyExplainer(model).fit().explain(X[:5])
    assert_allclose(total(decision), model.decision_function(X[:5]), atol=1e-11)
    score = PKeXShapleyExplainer(model, output="score_samples").fit().explain(X[:5])
    assert_allclose(total(score), model.score_samples(X[:5]), atol=1e-11)
    assert_array_equal(score.values, decision.values)
    unfitted = PKeXShapleyExplainer(OneClassSVM()).fit(X)
    assert unfitted.transform(X[:2]).shape == (2, 30)


def test_margin_output_is_the_mean_over_a_classes_pairs(wine):
    X, y = wine
    model = SVC(decision_function_shape="ovo").fit(X, y)
    d = model.decision_function(X[::10])
    explanation = PKeXShapleyExplainer(model, output="margin").fit().explain(X[::10])
    expected = [(d[:, 0] + d[:, 1]) / 2, (-d[:, 0] + d[:, 2]) / 2, (-d[:, 1] - d[:, 2]) / 2]
    assert_allclose(total(explanation), np.column_stack(expected), atol=1e-11)
    assert explanation.output_names == ["red", "rose", "white"]
    assert np.mean(model.classes_[total(explanation).argmax(axis=1)] == y[::10]) > 0.9


def test_svc_with_uneven_classes_and_weights():
    generator = np.random.default_rng(2)
    X = generator.normal(size=(90, 4))
    y = np.searchsorted([-0.5, 0.8, 1.5], X[:, 0] + 0.3 * X[:, 1])
    model = SVC(C=3, class_weight="balanced", decision_function_shape="ovo").fit(X, y)
    assert len(model.classes_) == 4
    explanation = PKeXShapleyExplainer(model).fit().explain(X[:7])
    assert_allclose(total(explanation), model.decision_function(X[:7]), atol=1e-11)


def latent_mean(base, X):
    return base.kernel_(X, base.X_train_) @ (base.y_train_ - base.pi_)


def test_gaussian_process_classifier(cancer, wine):
    X, y = cancer
    model = GaussianProcessClassifier(2.0 * gp.RBF(5.0), optimizer=None).fit(X[:60], y[:60])
    explanation = PKeXShapleyExplainer(model, output="latent").fit().explain(X[:5])
    assert_allclose(total(explanation), latent_mean(model.base_estimator_, X[:5]), atol=1e-12)
    assert np.all((total(explanation) > 0) == (model.predict(X[:5]) == model.classes_[1]))
    X, y = wine
    model = GaussianProcessClassifier(gp.RBF(3.0), max_iter_predict=20).fit(X[::3], y[::3])
    lengths = {str(part.kernel_) for part in model.base_estimator_.estimators_}
    assert len(lengths) == 3
    explanation = PKeXShapleyExplainer(model).fit().explain(X[:4])
    expected = [latent_mean(part, X[:4]) for part in model.base_estimator_.estimators_]
    assert_allclose(total(explanation), np.column_stack(expected), atol=1e-12)
    assert explanation.output_names == ["red", "rose", "white"]
    pairs = GaussianProcessClassifier(optimizer=None, multi_class="one_vs_one").fit(X[::9], y[::9])
    with pytest.raises(ValueError, match="one_vs_rest"):
        PKeXShapleyExplainer(pairs).fit()


@pytest.mark.parametrize(
    "linear",
    [Ridge(), LinearRegression(), Lasso(0.1), HuberRegressor(), SGDRegressor(random_state=0),
     LinearSVR(max_iter=10000, random_state=0)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_nystroem_regression(diabetes, linear, kernel):
    X, y = diabetes
    for gamma in (None, 0.05):
        nystroem = Nystroem(kernel=kernel, gamma=gamma, n_components=25, random_state=0)
        model = make_pipeline(RobustScaler(), nystroem, clone(linear)).fit(X, y)
        explanation = PKeXShapleyExplainer(model).fit().explain(X[:5])
        assert explanation.values.shape == (5, 10)
        assert_allclose(total(explanation), model.predict(X[:5]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "linear",
    [LogisticRegression(), LinearSVC(), RidgeClassifier(), SGDClassifier(random_state=0)],
    ids=str,
)
def test_nystroem_classification(cancer, wine, linear):
    for X, y in (cancer, wine):
        model = make_pipeline(Nystroem(gamma=0.05, n_components=30, random_state=0), clone(linear))
        model.fit(X, y)
        explanation = PKeXShapleyExplainer(model).fit().explain(X[:5])
        assert_allclose(total(explanation), model.decision_function(X[:5]), atol=1e-9)


def test_nystroem_of_several_targets_and_chi2(diabetes):
    X, y = diabetes
    X = MinMaxScaler().fit_transform(X)
    model = make_pipeline(Nystroem("chi2", n_components=20, random_state=0), Ridge())
    model.fit(X, np.column_stack([y, y**2]))
    explanation = PKeXShapleyExplainer(model).fit().explain(X[:5])
    assert_allclose(total(explanation), model.predict(X[:5]), rtol=1e-9)


def test_nystroem_needs_a_linear_model(diabetes):
    X, y = diabetes
    model = make_pipeline(Nystroem(n_components=10), KNeighborsRegressor()).fit(X, y)
    with pytest.raises(TypeError, match="no coef_"):
        PKeXShapleyExplainer(model).fit()
    model = make_pipeline(Nystroem(n_components=10), PoissonRegressor()).fit(X, y)
    with pytest.raises(ValueError, match="doesn't reproduce"):
        PKeXShapleyExplainer(model).fit()


@pytest.mark.parametrize(
    "transformer", [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), None], ids=str
)
def test_scaled_target(diabetes, transformer):
    X, y = diabetes
    inner = make_pipeline(StandardScaler(), SVR(C=3))
    model = TransformedTargetRegressor(inner, transformer=transformer).fit(X, y)
    explanation = PKeXShapleyExplainer(model).fit(X).explain(X[:5])
    assert_allclose(total(explanation), model.predict(X[:5]), rtol=1e-11)
    both = np.column_stack([y, 5 + y**2])
    model = TransformedTargetRegressor(KernelRidge(kernel="rbf"), transformer=transformer)
    model.fit(X, both)
    explanation = PKeXShapleyExplainer(model).fit().explain(X[:5])
    assert_allclose(total(explanation), model.predict(X[:5]), rtol=1e-10)
    unfitted = PKeXShapleyExplainer(TransformedTargetRegressor(SVR())).fit(X, y)
    assert unfitted.transform(X[:2]).shape == (2, 10)


def test_bent_target_is_refused(diabetes):
    X, y = diabetes
    for options in (
        {"func": np.log, "inverse_func": np.exp},
        {"transformer": PowerTransformer()},
    ):
        model = TransformedTargetRegressor(SVR(), **options).fit(X, y)
        with pytest.raises(ValueError, match="affine"):
            PKeXShapleyExplainer(model).fit()


def test_one_against_rest(wine, cancer):
    X, y = wine
    for inner in (SVC(), KernelRidge(kernel="rbf")):
        if isinstance(inner, SVC):
            model = OneVsRestClassifier(inner).fit(X, y)
            explanation = PKeXShapleyExplainer(model).fit().explain(X[::40])
            assert_allclose(total(explanation), model.decision_function(X[::40]), atol=1e-11)
            assert explanation.output_names == ["red", "rose", "white"]
    widths = OneVsRestClassifier(SVC(gamma=0.1)).fit(X, y)
    widths.estimators_[1] = SVC(gamma=0.5).fit(X, y == "rose")
    explanation = PKeXShapleyExplainer(widths).fit().explain(X[::40])
    assert_allclose(total(explanation), widths.decision_function(X[::40]), atol=1e-11)
    X, y = cancer
    model = OneVsRestClassifier(SVC()).fit(X, y)
    explanation = PKeXShapleyExplainer(model).fit().explain(X[:5])
    assert_allclose(total(explanation), model.decision_function(X[:5]), atol=1e-11)


def test_one_against_one_favours_the_first_class(wine):
    X, y = wine
    pairs = OneVsOneClassifier(SVC(gamma=0.1)).fit(X, y)
    whole = SVC(gamma=0.1).fit(X, y)
    first = PKeXShapleyExplainer(pairs).fit().explain(X[::40])
    second = PKeXShapleyExplainer(whole).fit().explain(X[::40])
    assert first.output_names == second.output_names
    assert_allclose(first.values, second.values, atol=1e-3)


def test_one_machine_a_target(diabetes):
    X, y = diabetes
    model = MultiOutputRegressor(SVR(C=10)).fit(X, np.column_stack([y, -(y**2)]))
    explanation = PKeXShapleyExplainer(model).fit().explain(X[:5])
    assert_allclose(total(explanation), model.predict(X[:5]), rtol=1e-10)


FACTORS = [
    RBFFactor(length_scale=1.5),
    LaplacianFactor(gamma=0.3),
    Matern1DFactor(nu=1.5, length_scale=2.0),
    Matern1DFactor(nu=2.5),
    Matern1DFactor(nu=0.5),
    PeriodicFactor(period=4.0, length_scale=1.5),
    HammingFactor(lam=0.4),
    CallableFactor(lambda x, y: 1 / (1 + np.subtract.outer(x, y) ** 2)),
    CallableFactor(lambda x, y: -0.1 * np.abs(np.subtract.outer(x, y)), log=True),
    Chi2Factor(gamma=0.5),
]


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_machines_with_every_factor(backend):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 10))
    X[:, 6] = generator.integers(0, 3, size=50)
    X[:, 9] = np.abs(X[:, 9])
    y = X[:, 0] + np.sin(X[:, 5]) + X[:, 6]
    for factors in (FACTORS, [f for f in FACTORS if not isinstance(f, CallableFactor) or f.log]):
        columns = [j for j, f in enumerate(FACTORS) if f in factors]
        kernel = ProductKernel(factors, scale=1.7)
        Z = X[:, columns]
        for model in (KernelRidge(kernel=kernel, alpha=0.1), SVR(kernel=kernel, C=5.0)):
            model.fit(Z, y)
            explainer = PKeXShapleyExplainer(model, backend=backend).fit(Z)
            explanation = explainer.explain(Z[:4])
            assert_allclose(total(explanation), model.predict(Z[:4]), atol=1e-10)
            check_shapley_axioms(explainer, Z[:2], atol=1e-11)
    assert explanation.n_nodes == len(columns) // 2 + len(columns) % 2


def test_factors_beyond_one_use_the_exact_number_of_nodes():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20, 9))
    anova = CallableFactor(lambda x, y: 1 + np.exp(-0.5 * np.subtract.outer(x, y) ** 2))
    model = KernelRidge(kernel=ProductKernel([anova] * 9), alpha=1.0).fit(X, X[:, 0])
    explainer = PKeXShapleyExplainer(model).fit()
    explanation = explainer.explain(X[:2])
    assert explanation.n_nodes == 5
    assert explanation.error_bound == 0.0
    check_shapley_axioms(explainer, X[:2], atol=1e-10)
    coarse = PKeXShapleyExplainer(model, n_nodes=2, check_additivity=False).fit().explain(X[:1])
    assert coarse.error_bound == np.inf


def test_identity_removal_drops_the_components_of_an_anova_kernel():
    """With factors 1 + k, removing j drops exactly the components that hold j."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(15, 3))
    base = [RBFFactor(gamma=0.5)] * 3
    one_plus = [CallableFactor(lambda x, y: 1 + np.exp(-0.5 * np.subtract.outer(x, y) ** 2))] * 3
    model = KernelRidge(kernel=ProductKernel(one_plus), alpha=1.0).fit(X, X[:, 0])
    v = PKeXShapleyExplainer(model).fit().value_function(X[:2], [[1, 0, 1]])
    K = ProductKernel(base).factors_matrix(X[:2], X)
    parts = 1 + K[..., 0] + K[..., 2] + K[..., 0] * K[..., 2]
    assert_allclose(v[:, 0], parts @ model.dual_coef_, atol=1e-12)


def test_callable_svm_needs_its_training_rows(cancer):
    X, y = cancer
    kernel = ProductKernel([RBFFactor(gamma=0.02)] * 30)
    model = SVC(kernel=kernel).fit(X, y)
    with pytest.raises(ValueError, match="training rows"):
        PKeXShapleyExplainer(model).fit()
    with pytest.raises(ValueError, match="training rows"):
        PKeXShapleyExplainer(model).fit(X[:50])
    explanation = PKeXShapleyExplainer(model).fit(X).explain(X[:5])
    assert_allclose(total(explanation), model.decision_function(X[:5]), atol=1e-11)
    with pytest.raises(ValueError, match="doesn't reproduce"):
        PKeXShapleyExplainer(model).fit(X[::-1])


def mixed_frame():
    generator = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "size": generator.normal(size=n),
            "colour": generator.choice(["red", "green", "blue"], size=n),
            "weight": np.where(np.arange(n) % 7 == 0, np.nan, generator.normal(size=n)),
            "grade": generator.choice(["a", "b"], size=n),
            "noise": generator.normal(size=n),
        }
    )
    y = frame["size"] + (frame["colour"] == "red") * 2.0 + (frame["grade"] == "a")
    return frame, y.to_numpy()


@pytest.mark.parametrize("sparse_output", [True, False])
@pytest.mark.parametrize("drop", [None, "first"])
def test_columns_of_one_feature_are_one_player(sparse_output, drop):
    frame, y = mixed_frame()
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=sparse_output, drop=drop), ["colour", "grade"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["weight"]),
        ("drop", ["noise"]),
        ("passthrough", ["size"]),
        sparse_threshold=1.0,
    )
    model = make_pipeline(columns, SVR(C=10)).fit(frame, y)
    for removal in ("identity", "marginal", "interventional", "baseline"):
        reference = {"identity": None, "baseline": frame[:1]}.get(removal, frame[:6])
        explainer = PKeXShapleyExplainer(model, removal=removal, reference=reference).fit(frame)
        explanation = explainer.explain(frame[:4])
        assert explanation.feature_names == list(frame.columns)
        assert explanation.values.shape == (4, 5)
        assert np.all(explanation.values[:, 4] == 0.0)
        assert_allclose(total(explanation), model.predict(frame[:4]), atol=1e-11)
        check_shapley_axioms(explainer, frame[:2], atol=1e-11)
    assert explanation.data[0, 1] == frame["colour"][0]
    merged = PKeXShapleyExplainer(
        model, groups={"look": ["colour", "grade"], "rest": ["size", "weight", "noise"]}
    ).fit()
    check_shapley_axioms(merged, frame[:2], atol=1e-11)


def test_replacing_a_one_hot_feature_changes_all_its_columns():
    """The baseline value of {colour absent} is the prediction with the reference's colour."""
    frame, y = mixed_frame()
    columns = ColumnTransformer(
        [("code", OneHotEncoder(), ["colour"]), ("keep", "passthrough", ["size", "noise"])]
    )
    frame = frame[["size", "noise", "colour"]]
    model = make_pipeline(columns, SVR(C=10)).fit(frame, y)
    reference = frame[3:4]
    explainer = PKeXShapleyExplainer(model, removal="baseline", reference=reference).fit()
    v = explainer.value_function(frame[:5], [[True, True, False]])
    changed = frame[:5].assign(colour=reference["colour"].iloc[0])
    assert_allclose(v[:, 0], model.predict(changed), atol=1e-12)


def test_ordinal_and_binned_features(diabetes):
    X, y = diabetes
    for binned in (
        KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"),
        KBinsDiscretizer(4, encode="onehot", quantile_method="averaged_inverted_cdf"),
        make_pipeline(
            KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"),
            OrdinalEncoder(),
            OneHotEncoder(),
        ),
    ):
        model = make_pipeline(binned, SVR(C=10)).fit(X, y)
        explainer = PKeXShapleyExplainer(model).fit(X)
        explanation = explainer.explain(X[:3])
        assert explanation.values.shape == (3, 10)
        assert_allclose(total(explanation), model.predict(X[:3]), rtol=1e-10)


# Searches for hyperparameters


@pytest.mark.parametrize("kind", [GridSearchCV, RandomizedSearchCV])
def test_searches_stand_for_their_best_model(diabetes, kind):
    X, y = diabetes
    options = {"n_iter": 2, "random_state": 0} if kind is RandomizedSearchCV else {}
    search = kind(
        make_pipeline(StandardScaler(), SVR()), {"svr__C": [1.0, 30.0]}, cv=2, **options
    ).fit(X, y)
    ours = PKeXShapleyExplainer(search).fit()
    expected = PKeXShapleyExplainer(search.best_estimator_).fit()
    assert_array_equal(ours.shap_values(X[:3]), expected.shap_values(X[:3]))
    assert ours.estimator_ is search
    assert_allclose(total(ours.explain(X[:3])), search.predict(X[:3]), rtol=1e-10)


def test_searches_are_fitted_like_other_models(diabetes):
    X, y = diabetes
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    frame["place"] = np.where(y > 140, "north", "south")
    columns = make_column_transformer((StandardScaler(), names), (OneHotEncoder(), ["place"]))
    search = GridSearchCV(
        make_pipeline(columns, KernelRidge(kernel="rbf")), {"kernelridge__alpha": [0.1, 1]}, cv=2
    )
    ours = PKeXShapleyExplainer(search, removal="interventional", reference=5, random_state=0)
    explanation = ours.fit(frame, y).explain(frame[:4])
    assert explanation.feature_names == list(frame.columns)
    assert_allclose(total(explanation), ours.estimator_.predict(frame[:4]), rtol=1e-10)
    assert not hasattr(search, "best_estimator_")
    scaled = TransformedTargetRegressor(search.estimator, transformer=StandardScaler())
    again = PKeXShapleyExplainer(scaled).fit(frame, y)
    assert_allclose(
        total(again.explain(frame[:4])), again.estimator_.predict(frame[:4]), rtol=1e-10
    )


def test_search_without_a_model_is_refused(diabetes):
    X, y = diabetes
    search = GridSearchCV(SVR(), {"C": [1.0, 2.0]}, cv=2, refit=False).fit(X, y)
    with pytest.raises(ValueError, match=r"best_estimator_.*refit=False"):
        PKeXShapleyExplainer(search).fit()


# Models that the given kernel doesn't reproduce


@pytest.mark.parametrize(
    ("model", "output"),
    [
        (GaussianProcessClassifier(gp.RBF(2.0), optimizer=None), "auto"),
        (SVC(), "margin"),
        (OneVsOneClassifier(SVC()), "auto"),
        (OneVsRestClassifier(SVC()), "auto"),
    ],
)
def test_wrong_kernel_is_noticed_in_every_output(wine, model, output):
    X, y = wine
    model = clone(model).fit(X, y)
    PKeXShapleyExplainer(model, output=output).fit()
    wrong = ProductKernel([RBFFactor(gamma=0.9)] * X.shape[1])
    with pytest.raises(ValueError, match="doesn't reproduce"):
        PKeXShapleyExplainer(model, output=output, kernel=wrong).fit()
