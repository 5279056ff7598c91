"""Items with several people's labels: generators with a known posterior, and published votes."""

from .ambiguous_digits import make_ambiguous_digits
from .annotators import inject_mode_shift, simulate_annotators
from .human_votes import fetch_fashion_mnist_h, load_cifar10h_counts

__all__ = [
    "fetch_fashion_mnist_h",
    "inject_mode_shift",
    "load_cifar10h_counts",
    "make_ambiguous_digits",
    "simulate_annotators",
]
