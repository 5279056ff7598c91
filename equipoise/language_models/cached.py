"""A cache on disk around any language model."""

import json
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from equipoise.language_models.protocol import (
    LanguageModel,
    LanguageModelError,
    SharedByCopies,
    stop_strings,
)

__all__ = ["CachedModel"]


def key(request: str) -> str:
    """Digest of a request: the primary key in the cache."""
    return sha256(request.encode()).hexdigest()


class CachedModel(SharedByCopies):
    """A model whose answers are kept on disk, and never asked for twice.

    Parameters
    ----------
    model : LanguageModel
        Who is asked where the cache has no answer.
    path : str or path
        SQLite file; made when it is first needed. Threads and processes may share it.
    identity : str, optional
        Name of the model in the cache. Default: the model's own ``identity``.
    batch_size : int, default=16
        Prompts that are asked together. Their answers are written before the next are asked, so a
        killed run loses at most one batch.

    Raises
    ------
    ValueError
        If the model has no identity and none is given.

    Notes
    -----
    The key is identity, prompt and all parameters. At temperature 0 a repeated prompt is asked
    once. At larger temperatures the repetitions within one call are samples of their own: the
    first, second, ... occurrence of a prompt each have an answer.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from equipoise.language_models import CachedModel, ScriptedModel
    >>> asked = ScriptedModel(lambda prompt: prompt.upper())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = CachedModel(asked, Path(folder) / "answers.sqlite", identity="upper")
    ...     answers = [model.complete(["yes", "no", "yes"]), model.complete(["no"])]
    >>> answers
    [['YES', 'NO', 'YES'], ['NO']]
    >>> asked.prompts
    ['yes', 'no']
    """

    def __init__(
        self,
        model: LanguageModel,
        path: str | os.PathLike[str],
        *,
        identity: str | None = None,
        batch_size: int = 16,
    ) -> None:
        identity = identity or getattr(model, "identity", None)
        if not identity:
            raise ValueError(
                f"identity: {model!r} has none; give a name under which its answers are kept"
            )
        if not batch_size >= 1:
            raise ValueError(f"batch_size={batch_size!r}: allowed is a positive int")
        self.model = model
        self.path = Path(path).expanduser()
        self.identity = identity
        self.batch_size = batch_size
        self._under_way: set[str] = set()
        self._changed = threading.Condition()

    def complete(
        self,
        prompts: Sequence[str],
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
    ) -> list[str]:
        """Answer each prompt from the cache, or ask the model; see `LanguageModel.complete`.

        Parameters
        ----------
        prompts : sequence of str
            The prompts.
        max_tokens : int, default=256
            Longest answer, in the model's tokens.
        temperature : float, default=0.0
            Handed to the model, and part of the key, as are all parameters.
        seed : int, optional
            Seed of the sampling.
        stop : str or sequence of str, optional
            An answer ends before the first of these strings.

        Returns
        -------
        list of str
            One answer a prompt, in order.

        Raises
        ------
        LanguageModelError
            If the model fails, or returns anything but one text a prompt.
        ValueError
            If `path` isn't a SQLite file.
        """
        stops = stop_strings(prompts, max_tokens, temperature, stop)
        options: dict[str, Any] = {
            "max_tokens": int(max_tokens),
            "temperature": float(temperature),
            "seed": None if seed is None else int(seed),
            "stop": stops or None,
        }
        requests = self._requests(prompts, options)
        prompt_of = dict(zip(requests, prompts, strict=True))
        answers: dict[str, str] = {}
        while len(answers) < len(prompt_of):
            answers, mine = self._claim(list(prompt_of))
            try:
                for start in range(0, len(mine), self.batch_size):
                    batch = mine[start : start + self.batch_size]
                    texts = self.model.complete(
                        [prompt_of[request] for request in batch], **options
                    )
                    if len(texts) != len(batch) or not all(isinstance(text, str) for text in texts):
                        raise LanguageModelError(
                            f"{self.identity}: {len(batch)} prompts brought {texts!r:.200}, "
                            "not one text each"
                        )
                    self._write(batch, texts)
            finally:
                with self._changed:
                    self._under_way.difference_update(mine)
                    self._changed.notify_all()
        return [answers[request] for request in requests]

    def _requests(self, prompts: Sequence[str], options: Mapping[str, Any]) -> list[str]:
        """What each prompt is kept under; the same where one answer serves two prompts."""
        seen: Counter[str] = Counter()
        requests = []
        for prompt in prompts:
            occurrence = seen[prompt] if options["temperature"] > 0 else 0
            seen[prompt] += 1
            asked = {"model": self.identity, "prompt": prompt, **options, "occurrence": occurrence}
            requests.append(json.dumps(asked, sort_keys=True))
        return requests

    def _claim(self, requests: list[str]) -> tuple[dict[str, str], list[str]]:
        """Answers on disk, and the requests that are now this thread's to ask.

        Waits while everything that is missing is being asked by other threads.
        """
        with self._changed:
            while True:
                stored = self._read(requests)
                mine = [r for r in requests if r not in stored and r not in self._under_way]
                if mine or len(stored) == len(requests):
                    self._under_way.update(mine)
                    return stored, mine
                self._changed.wait()

    @contextmanager
    def _table(self) -> Iterator[sqlite3.Connection]:
        """A connection and one transaction; the file and its table are made where they lack."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(sqlite3.connect(self.path, timeout=60)) as connection, connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS answers "
                    "(key TEXT PRIMARY KEY, request TEXT, answer TEXT)"
                )
                yield connection
        except sqlite3.Error as error:
            raise ValueError(f"path={str(self.path)!r} can't serve as cache: {error}") from error

    def _read(self, requests: Sequence[str]) -> dict[str, str]:
        found = {}
        with self._table() as table:
            for request in requests:
                row = table.execute("SELECT answer FROM answers WHERE key = ?", (key(request),))
                for (answer,) in row:
                    found[request] = json.loads(answer)
        return found

    def _write(self, requests: Sequence[str], texts: Sequence[str]) -> None:
        # JSON, because SQLite's text can't hold the lone surrogates that some models emit.
        rows = [(key(r), r, json.dumps(text)) for r, text in zip(requests, texts, strict=True)]
        with self._table() as table:
            # An answer that another process wrote meanwhile stands: all readers see the same.
            table.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", rows)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("_under_way", "_changed")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._under_way = set()
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        return f"CachedModel({self.model!r}, path={str(self.path)!r})"
