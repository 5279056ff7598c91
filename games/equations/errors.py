"""What goes wrong with systems of equations beyond a malformed input."""

__all__ = ["LEMMNotUniqueError", "LEMMSingularError"]


class LEMMSingularError(ValueError):
    """The matrix I - Q of a policy is singular, so the policy has no unique value.

    Examples
    --------
    >>> from equipoise.games import LEMM, LEMMSingularError
    >>> problem = LEMM.from_equations("x = x + 1")
    >>> try:
    ...     problem.evaluate([0])
    ... except LEMMSingularError as error:
    ...     print(error)
    I - Q is singular on the nodes 0: this policy has no unique value
    """


class LEMMNotUniqueError(ValueError):
    """The system is proved to have no unique solution for some offsets.

    Parameters
    ----------
    message : str
        What was found.
    policies : tuple of ndarray, default=()
        One policy with a singular matrix, or two whose determinants have opposite signs.

    Attributes
    ----------
    policies : tuple of ndarray
        As given.

    Examples
    --------
    >>> from equipoise.games import LEMM, LEMMNotUniqueError, solve_lemm
    >>> problem = LEMM.from_equations("x1 = max(2*x2 - 1, 0); x2 = x1".split(";"))
    >>> try:
    ...     solve_lemm(problem)
    ... except LEMMNotUniqueError as error:
    ...     print([policy.tolist() for policy in error.policies])
    [[0, 0], [1, 0]]
    """

    def __init__(self, message: str, policies: tuple = ()) -> None:
        super().__init__(message)
        self.policies = policies

    def __reduce__(self) -> tuple:
        return type(self), (self.args[0], self.policies)
