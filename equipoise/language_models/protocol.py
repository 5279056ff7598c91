"""The protocol of language models, and what its implementations share."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Protocol, Self, runtime_checkable

__all__ = ["LanguageModel", "LanguageModelError", "SharedByCopies", "cut", "stop_strings"]


class LanguageModelError(RuntimeError):
    """A language model gave no usable answer; the message says who was asked and what came back.

    Examples
    --------
    >>> from equipoise.language_models import LanguageModelError, ScriptedModel
    >>> try:
    ...     ScriptedModel(["only one answer"]).complete(["first?", "second?"])
    ... except LanguageModelError as error:
    ...     print(error)
    ScriptedModel: the script has 1 answers, and prompt 2 came: 'second?'
    """


@runtime_checkable
class LanguageModel(Protocol):
    """Anything that completes prompts: what systems that ask a language model accept.

    Examples
    --------
    >>> from equipoise.language_models import LanguageModel, ScriptedModel
    >>> isinstance(ScriptedModel({}), LanguageModel)
    True
    """

    def complete(
        self,
        prompts: Sequence[str],
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
    ) -> list[str]:
        """Answer each prompt.

        Parameters
        ----------
        prompts : sequence of str
            The prompts.
        max_tokens : int, default=256
            Longest answer, in the model's tokens.
        temperature : float, default=0.0
            0 takes the likeliest token each time, larger values sample.
        seed : int, optional
            Seed of the sampling, where the model can be seeded.
        stop : str or sequence of str, optional
            An answer ends before the first of these strings.

        Returns
        -------
        list of str
            One answer a prompt, in order.

        Raises
        ------
        LanguageModelError
            If the model gives no usable answer.
        """
        ...


def stop_strings(
    prompts: Sequence[str], max_tokens: int, temperature: float, stop: str | Sequence[str] | None
) -> list[str]:
    """Check the parameters of `complete`, and return the stop strings as a list."""
    if isinstance(prompts, str) or not all(isinstance(prompt, str) for prompt in prompts):
        raise TypeError(
            f"prompts={prompts!r:.80}: allowed is a sequence of str, also for one prompt"
        )
    if not (isinstance(max_tokens, Integral) and max_tokens > 0):
        raise ValueError(f"max_tokens={max_tokens!r}: allowed is a positive int")
    if not (isinstance(temperature, Real) and 0 <= temperature < float("inf")):
        raise ValueError(f"temperature={temperature!r}: allowed is a finite number, at least 0")
    stops = [stop] if isinstance(stop, str) else list(stop or ())
    if not all(isinstance(text, str) and text for text in stops):
        raise ValueError(f"stop={stop!r}: allowed are non-empty strings")
    return stops


def cut(text: str, stops: Sequence[str]) -> str:
    """The text before the first stop string."""
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=None)]


class SharedByCopies:
    """A client is a configuration: copies, and with them `sklearn.base.clone`, share the object."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
