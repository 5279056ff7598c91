"""The contract that all systems share, held for every public class the day it is exported."""

import copy
import importlib
import importlib.util
import inspect
import pickle
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

ROOMS = ("datasets", "estimators", "explainers", "games")


def load_table():
    path = Path(__file__).with_name("contract_cases.py")
    spec = importlib.util.spec_from_file_location("contract_cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


table = load_table()


def public_objects():
    """Every (room, name, object) that a room lists."""
    for room in ROOMS:
        module = importlib.import_module(f"equipoise.{room}")
        for name in module.__all__:
            yield room, name, getattr(module, name)


PUBLIC = list(public_objects())
CLASSES = [(name, thing) for _, name, thing in PUBLIC if inspect.isclass(thing)]
FITTED_CLASSES = [
    (name, cls) for name, cls in CLASSES if issubclass(cls, BaseEstimator) and hasattr(cls, "fit")
]
ids = [name for name, _ in FITTED_CLASSES]
each_class = pytest.mark.parametrize(("name", "cls"), FITTED_CLASSES, ids=ids)


def case_of(name):
    return table.CASES.get(name, table.Case())


@pytest.fixture(autouse=True)
def expect_warnings(request):
    """Leave out of the output what the table foresees of the class at hand."""
    given = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    name = given.get("name", type(given.get("estimator")).__name__)
    if case_of(name).warns:
        warnings.filterwarnings("ignore", case_of(name).warns)  # undone by pytest after the test


def make(name, cls):
    return case_of(name).make(cls)


def fit_arguments(name, estimator):
    case = case_of(name)
    if case.fit is not None:
        return case.fit()
    return table.classification() if is_classifier(estimator) else table.regression()


def fitted(name, cls):
    estimator = make(name, cls)
    arguments = fit_arguments(name, estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = estimator.fit(*arguments)
    assert result is estimator, "fit must return self"
    return estimator, arguments


def takes_arrays(name):
    return case_of(name).sklearn_checks


def answers(estimator, name, arguments):
    """What the fitted object says, as arrays and texts that can be compared to the bit."""
    case, found = case_of(name), {}
    if takes_arrays(name):
        for method in ("predict", "predict_proba", "decision_function", "transform"):
            if hasattr(estimator, method):
                found[method] = np.asarray(getattr(estimator, method)(arguments[0]))
    if case.explain is not None:
        explanation = estimator.explain(*case.explain(arguments))
        if hasattr(explanation, "to_frame"):
            found["explain"] = explanation.to_frame().to_csv()
        else:
            found["explain"] = np.asarray(explanation.values)
    return found


def assert_same_answers(first, second):
    assert first.keys() == second.keys()
    for key, value in first.items():
        np.testing.assert_array_equal(value, second[key], err_msg=key)


def test_table_names_only_public_classes():
    assert set(table.CASES) <= {name for name, _ in CLASSES}


@each_class
def test_constructor_only_stores(name, cls):
    signature = inspect.signature(cls.__init__)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    assert all(p.kind is not p.VAR_POSITIONAL and p.kind is not p.VAR_KEYWORD for p in parameters)
    estimator = make(name, cls)
    assert set(vars(estimator)) == {p.name for p in parameters}
    marker = {p.name: object() for p in parameters}
    stored = vars(cls(**marker))
    assert all(stored[key] is value for key, value in marker.items()), (
        "__init__ changes or checks a parameter"
    )


@each_class
def test_parameters_round_trip(name, cls):
    estimator = make(name, cls)
    parameters = estimator.get_params(deep=False)
    twin = clone(estimator)
    assert twin is not estimator
    assert twin.get_params(deep=False).keys() == parameters.keys()
    assert twin.set_params(**parameters) is twin
    assert all(twin.get_params(deep=False)[key] is value for key, value in parameters.items())
    assert cls.__name__ in repr(estimator)


@each_class
def test_docstring(name, cls):
    doc = ClassDoc(cls)
    documented = [p.name for p in doc["Parameters"]]
    documented = [n.strip() for entry in documented for n in entry.split(",")]
    assert documented == [p for p in inspect.signature(cls.__init__).parameters if p != "self"]
    assert doc["Attributes"], "no Attributes section"
    assert doc["References"], "no References section"
    assert ">>>" in "\n".join(doc["Examples"]), "no doctest"
    for method in ("fit", "explain", "predict", "predict_proba", "transform"):
        if hasattr(cls, method) and getattr(cls, method).__module__.startswith("equipoise"):
            text = inspect.getdoc(getattr(cls, method))
            assert text, f"{method} has no docstring"
            sections = FunctionDoc(getattr(cls, method))
            assert sections["Returns"], f"{method} doesn't say what it returns"
    if takes_arrays(name):
        assert "shape" in inspect.getdoc(cls.fit), "fit doesn't give the shapes of its arguments"


@each_class
def test_documented_attributes_exist(name, cls):
    estimator, _ = fitted(name, cls)
    doc = ClassDoc(cls)
    optional = ("only", "if ", "when", "where")
    for entry in doc["Attributes"]:
        described = " ".join(entry.desc).lower()
        for attribute in entry.name.split(","):
            if not any(word in described for word in optional):
                assert hasattr(estimator, attribute.strip()), (
                    f"{attribute} is documented but not set by fit"
                )


@each_class
def test_fit_sets_only_trailing_underscores(name, cls):
    estimator, _ = fitted(name, cls)
    learned = set(vars(estimator)) - set(inspect.signature(cls.__init__).parameters)
    assert learned, "fit learned nothing"
    assert all(attribute.endswith("_") or attribute.startswith("_") for attribute in learned), (
        learned
    )
    parameters = make(name, cls).get_params(deep=False)
    assert repr(estimator.get_params(deep=False)) == repr(parameters), "fit changed a parameter"


@each_class
def test_explains(name, cls):
    from equipoise.testing import check_explains

    case = case_of(name)
    if case.explain is None:
        assert case.no_explain, "a class without explain needs a reason in the table"
        assert not hasattr(cls, "explain")
        return
    estimator, arguments = fitted(name, cls)
    check_explains(estimator, *case.explain(arguments))


@each_class
def test_unfitted_use_is_refused(name, cls):
    case, estimator = case_of(name), make(name, cls)
    arguments = fit_arguments(name, estimator)
    methods = [m for m in ("predict", "predict_proba", "transform") if hasattr(estimator, m)]
    for method in methods if takes_arrays(name) else []:
        with pytest.raises(NotFittedError):
            getattr(estimator, method)(arguments[0])
    if case.explain is not None:
        with pytest.raises(NotFittedError):
            estimator.explain(*case.explain(arguments))


@each_class
def test_repeatable_and_picklable(name, cls):
    first, arguments = fitted(name, cls)
    second = clone(make(name, cls))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        second.fit(*copy.deepcopy(arguments))
    said = answers(first, name, arguments)
    assert_same_answers(said, answers(second, name, arguments))
    assert_same_answers(said, answers(pickle.loads(pickle.dumps(first)), name, arguments))


def bad_arguments(name, arguments):
    """Arguments that fit must refuse, each with words of which its message must hold one."""
    case = case_of(name)
    for rejected in case.rejects():
        yield rejected, ()
    if takes_arrays(name):
        X = np.array(arguments[0], dtype=float)
        X[0, 0] = np.nan
        if not get_tags(make(name, dict(FITTED_CLASSES)[name])).input_tags.allow_nan:
            yield (X, *arguments[1:]), ("NaN",)
        yield (np.where(np.isnan(X), np.inf, X), *arguments[1:]), ("infinity", "inf")
        if len(arguments) > 1:
            yield (arguments[0][:-1], *arguments[1:]), ("inconsistent", "samples", "length", "rows")


@each_class
def test_failed_fit_changes_nothing(name, cls):
    estimator, arguments = fitted(name, cls)
    before = joblib.hash(vars(estimator))
    for rejected, words in bad_arguments(name, arguments):
        with pytest.raises((TypeError, ValueError)) as refusal:
            estimator.fit(*rejected)
        message = str(refusal.value)
        assert message
        assert not words or any(word.lower() in message.lower() for word in words), message
        assert joblib.hash(vars(estimator)) == before, "a failed fit changed the estimator"


@each_class
def test_wrong_number_of_features_is_refused(name, cls):
    if not takes_arrays(name):
        pytest.skip("fit takes no feature matrix")
    estimator, arguments = fitted(name, cls)
    before = joblib.hash(vars(estimator))
    wide = np.hstack([arguments[0], arguments[0]])
    for method in ("predict", "predict_proba", "transform", "explain"):
        if hasattr(estimator, method) and (
            method != "explain" or case_of(name).explain is not None
        ):
            asked = case_of(name).explain(arguments) if method == "explain" else (wide,)
            if not asked:
                continue  # explains what was fitted: there is nothing to check
            rest = asked[1:]
            with pytest.raises(ValueError, match=r"features") as refusal:
                getattr(estimator, method)(wide, *rest)
            assert str(wide.shape[1]) in str(refusal.value)
    assert joblib.hash(vars(estimator)) == before


@pytest.mark.parametrize(
    ("name", "thing"), [(n, t) for _, n, t in PUBLIC], ids=[n for _, n, _ in PUBLIC]
)
def test_public_name_is_documented(name, thing):
    text = inspect.getdoc(thing)
    assert text, "no docstring"
    if inspect.isfunction(thing):
        doc = FunctionDoc(thing)
        assert doc["Returns"] or doc["Yields"]
        assert ">>>" in text, "no doctest"
        documented = {
            n.strip().lstrip("*") for entry in doc["Parameters"] for n in entry.name.split(",")
        }
        documented |= {
            n.strip().lstrip("*")
            for entry in doc["Other Parameters"]
            for n in entry.name.split(",")
        }
        assert documented == set(inspect.signature(thing).parameters)
    elif inspect.isclass(thing):
        assert ">>>" in text, "no doctest"


ARRAY_CLASSES = [(name, cls) for name, cls in FITTED_CLASSES if takes_arrays(name)]


@parametrize_with_checks(
    [make(name, cls) for name, cls in ARRAY_CLASSES],
    expected_failed_checks=lambda estimator: dict(
        case_of(type(estimator).__name__).expected_failures
    ),
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
