"""An explainer of ours in the clothes of `shap.Explainer`."""

from typing import Any

__all__ = ["shap_explainer"]


def shap_explainer(ours: Any) -> Any:
    """Wrap a fitted explainer, for code that asks for an instance of `shap.Explainer`.

    Parameters
    ----------
    ours : PKeXShapleyExplainer
        Fitted; it does all the work.

    Returns
    -------
    shap.Explainer
        Called with rows it returns what ``ours.explain`` returns.
    """
    import shap

    class ExactExplainer(shap.Explainer):
        """`shap.Explainer` in name; all work is done by `PKeXShapleyExplainer`."""

        def __init__(self) -> None:
            self.feature_names = list(ours.groups_)
            self.output_names = ours.output_names_ or None

        def __call__(self, X: Any) -> Any:
            return ours.explain(X)

        def shap_values(self, X: Any) -> Any:
            return ours.shap_values(X)

    return ExactExplainer()
