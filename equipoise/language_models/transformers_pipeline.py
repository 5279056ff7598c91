"""Client of a text-generation pipeline of transformers; imported when it is first asked."""

import os
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from equipoise.imports import optional_import
from equipoise.language_models.protocol import (
    LanguageModelError,
    SharedByCopies,
    cut,
    stop_strings,
)

__all__ = ["TransformersModel"]


def generate_batch(
    pipeline: Any, prompts: Sequence[str], max_tokens: int, temperature: float, stops: list[str]
) -> list[str]:
    """Generate with a pipeline's model and tokenizer, changing neither.

    A pipeline's own call needs a pad token and left padding set on the tokenizer, and looks for
    stop strings in the prompt too.
    """
    import torch
    from transformers import StoppingCriteriaList

    tokenizer, model = pipeline.tokenizer, pipeline.model
    if tokenizer.chat_template is not None:
        texts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], add_generation_prompt=True, tokenize=False
            )
            for prompt in prompts
        ]
        ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    else:
        ids = [tokenizer(prompt)["input_ids"] for prompt in prompts]
    special = (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id)
    pad = next((token for token in special if token is not None), 0)
    ids = [row or [pad] for row in ids]  # an empty prompt still needs a token to start from
    longest = max(map(len, ids))
    limit = getattr(model.config, "max_position_embeddings", None)
    if limit is not None and longest + max_tokens > limit:
        raise LanguageModelError(
            f"a prompt of {longest} tokens and max_tokens={max_tokens} exceed the {limit} "
            f"positions of {model.name_or_path or type(model).__name__}"
        )

    def stopped(tokens: Any, scores: Any, **_: Any) -> Any:
        texts = tokenizer.batch_decode(tokens[:, longest:], skip_special_tokens=True)
        done = [any(stop in text for stop in stops) for text in texts]
        return torch.tensor(done, device=tokens.device)

    how = (
        {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
    )
    tokens = model.generate(
        input_ids=torch.tensor(
            [[pad] * (longest - len(row)) + row for row in ids], device=model.device
        ),
        attention_mask=torch.tensor(
            [[0] * (longest - len(row)) + [1] * len(row) for row in ids], device=model.device
        ),
        max_new_tokens=max_tokens,
        pad_token_id=pad,
        stopping_criteria=StoppingCriteriaList([stopped] if stops else []),
        **how,
    )
    return tokenizer.batch_decode(tokens[:, longest:], skip_special_tokens=True)


class TransformersModel(SharedByCopies):
    """A text-generation pipeline of transformers on this machine.

    Parameters
    ----------
    model : str, path or transformers.Pipeline
        Name or folder of a model, loaded when it is first asked, or a text-generation pipeline.
    batch_size : int, default=8
        Prompts that are generated together.
    device : str or torch.device, default="auto"
        Where a model that is loaded here runs; a pipeline stays where it is.

    Notes
    -----
    A model with a chat template is sent the prompt as the user's message. At a temperature above 0
    the model's own generation settings (``top_p``, ``top_k``) hold, and an answer depends on the
    prompts that are asked with it: they share one generator.

    Examples
    --------
    >>> from equipoise.language_models import TransformersModel
    >>> TransformersModel("folder/of/a/model", batch_size=4)
    TransformersModel(model='folder/of/a/model', batch_size=4)
    """

    def __init__(self, model: Any, *, batch_size: int = 8, device: Any = "auto") -> None:
        if not batch_size >= 1:
            raise ValueError(f"batch_size={batch_size!r}: allowed is a positive int")
        self.model = model
        self.batch_size = batch_size
        self.device = device
        self._lock = threading.Lock()
        self._pipeline = None if isinstance(model, str | os.PathLike) else model

    @property
    def identity(self) -> str:
        """Who answers: the name or folder of the model; empty where it has none."""
        if isinstance(self.model, str | os.PathLike):
            return os.fspath(self.model)
        return self.model.model.name_or_path

    def complete(
        self,
        prompts: Sequence[str],
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
    ) -> list[str]:
        """Answer each prompt; see `LanguageModel.complete`.

        Parameters
        ----------
        prompts : sequence of str
            The prompts.
        max_tokens : int, default=256
            Longest answer, in the model's tokens.
        temperature : float, default=0.0
            0 is greedy decoding.
        seed : int, optional
            Seed of the sampling; None takes torch's generator as it stands.
        stop : str or sequence of str, optional
            An answer ends before the first of these strings.

        Returns
        -------
        list of str
            One answer a prompt, in order.

        Raises
        ------
        ImportError
            If transformers isn't installed (extra ``llm``).
        LanguageModelError
            If the model can't be loaded, or prompt and answer are longer than it can read.
        """
        from equipoise.devices import forked_seed

        stops = stop_strings(prompts, max_tokens, temperature, stop)
        pipeline = self._loaded()
        seeded = nullcontext() if seed is None else forked_seed(seed, pipeline.device)
        with seeded:
            return [
                cut(text, stops)
                for start in range(0, len(prompts), self.batch_size)
                for text in generate_batch(
                    pipeline,
                    prompts[start : start + self.batch_size],
                    max_tokens,
                    temperature,
                    stops,
                )
            ]

    def _loaded(self) -> Any:
        """The pipeline, loaded once also when threads ask for it together."""
        with self._lock:
            if self._pipeline is None:
                from equipoise.devices import resolve_device

                make = optional_import("transformers", "llm").pipeline
                name, device = os.fspath(self.model), resolve_device(self.device)
                try:
                    self._pipeline = make("text-generation", model=name, device=device)
                except (OSError, ValueError) as error:
                    raise LanguageModelError(f"model={name!r} can't be loaded: {error}") from error
            return self._pipeline

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_lock"}
        if isinstance(self.model, str | os.PathLike):
            state["_pipeline"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        name = self.model if isinstance(self.model, str | os.PathLike) else self.identity
        return f"TransformersModel(model={name!r}, batch_size={self.batch_size})"
