"""Trials of humans who decide with an AI's advice: a generator, and readers of public data sets."""

from .files import fetch_chatbench, load_bansal2021, load_haiid, load_imagenet16h
from .trials import make_human_ai_trials

__all__ = [
    "fetch_chatbench",
    "load_bansal2021",
    "load_haiid",
    "load_imagenet16h",
    "make_human_ai_trials",
]
