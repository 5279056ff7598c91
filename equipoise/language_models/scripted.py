"""A language model that answers from a script."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from equipoise.language_models.protocol import (
    LanguageModelError,
    SharedByCopies,
    cut,
    stop_strings,
)

__all__ = ["ScriptedModel"]


class ScriptedModel(SharedByCopies):
    """A model that answers from a script, for tests and for work without a model.

    Parameters
    ----------
    script : sequence of str, mapping of str to str, or callable
        Answers in order, answers by prompt, or ``script(prompt) -> answer``.

    Attributes
    ----------
    prompts : list of str
        Every prompt that was asked, in order.
    parameters : list of dict
        What each prompt was asked with: max_tokens, temperature, seed, stop. Of these only `stop`
        changes the answer; the script decides the rest.

    Examples
    --------
    >>> from equipoise.language_models import ScriptedModel
    >>> model = ScriptedModel(lambda prompt: prompt.upper())
    >>> model.complete(["yes", "no"])
    ['YES', 'NO']
    >>> model.prompts
    ['yes', 'no']
    """

    def __init__(self, script: Sequence[str] | Mapping[str, str] | Callable[[str], str]) -> None:
        if isinstance(script, str):
            raise TypeError(f"script={script!r:.80}: allowed are a list, a mapping and a callable")
        self.script = script
        self.prompts: list[str] = []
        self.parameters: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def complete(
        self,
        prompts: Sequence[str],
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
    ) -> list[str]:
        """Answer each prompt from the script; see `LanguageModel.complete`.

        Parameters
        ----------
        prompts : sequence of str
            The prompts.
        max_tokens, temperature, seed : object
            Recorded only.
        stop : str or sequence of str, optional
            An answer ends before the first of these strings.

        Returns
        -------
        list of str
            One answer a prompt, in order.

        Raises
        ------
        LanguageModelError
            If the script has no answer.
        """
        stops = stop_strings(prompts, max_tokens, temperature, stop)
        asked = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed, "stop": stop}
        with self._lock:
            first = len(self.prompts)
            self.prompts.extend(prompts)
            self.parameters.extend(dict(asked) for _ in prompts)
        return [cut(self._answer(prompt, first + i), stops) for i, prompt in enumerate(prompts)]

    def _answer(self, prompt: str, number: int) -> str:
        """The script's answer to a prompt, the `number`-th that was asked, counted from 0."""
        if callable(self.script):
            return self.script(prompt)
        if isinstance(self.script, Mapping):
            if prompt not in self.script:
                raise LanguageModelError(f"ScriptedModel: no answer to the prompt {prompt!r:.200}")
            return self.script[prompt]
        if number >= len(self.script):
            raise LanguageModelError(
                f"ScriptedModel: the script has {len(self.script)} answers, and prompt "
                f"{number + 1} came: {prompt!r:.200}"
            )
        return self.script[number]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"ScriptedModel({type(self.script).__name__}, {len(self.prompts)} prompts so far)"
