"""Language models behind one method: ``complete(prompts) -> texts``.

Every system that can ask a language model takes a `LanguageModel`: a server that speaks OpenAI's
chat protocol (`OpenAICompatibleModel`, standard library only), a transformers pipeline on this
machine (`TransformersModel`), a script for tests (`ScriptedModel`), or any of them behind a cache
on disk (`CachedModel`). Nothing here is imported, connected to or downloaded before it is asked.

Clients hold a configuration, not a learned state, so copies share them: `sklearn.base.clone` of an
estimator keeps its client.
"""

from equipoise.language_models.cached import CachedModel
from equipoise.language_models.openai_compatible import OpenAICompatibleModel
from equipoise.language_models.protocol import LanguageModel, LanguageModelError
from equipoise.language_models.scripted import ScriptedModel
from equipoise.language_models.transformers_pipeline import TransformersModel

__all__ = [
    "CachedModel",
    "LanguageModel",
    "LanguageModelError",
    "OpenAICompatibleModel",
    "ScriptedModel",
    "TransformersModel",
]
