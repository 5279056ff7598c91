"""Linear equations with min and max operators: problems, classes, solvers, certificates."""

from .batch import solve_lemm_batch
from .certificates import certify
from .classes import LEMMClass, classify_lemm
from .conversions import halting_transform
from .errors import LEMMNotUniqueError, LEMMSingularError
from .lemke import LemkeSolver
from .linear_program import LinearProgramLEMM
from .policy_iteration import PolicyIteration
from .problem import LEMM
from .reporting import plot_convergence, plot_policy
from .simple_policy_iteration import SimplePolicyIteration
from .solution_path import solution_path
from .solve import solve_lemm
from .value_iteration import ValueIteration

__all__ = [
    "LEMM",
    "LEMMClass",
    "LEMMNotUniqueError",
    "LEMMSingularError",
    "LemkeSolver",
    "LinearProgramLEMM",
    "PolicyIteration",
    "SimplePolicyIteration",
    "ValueIteration",
    "certify",
    "classify_lemm",
    "halting_transform",
    "plot_convergence",
    "plot_policy",
    "solution_path",
    "solve_lemm",
    "solve_lemm_batch",
]
