"""Client of servers that speak OpenAI's chat completions protocol, on the standard library."""

import json
import logging
import os
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from equipoise.language_models.protocol import (
    LanguageModelError,
    SharedByCopies,
    cut,
    stop_strings,
)

__all__ = ["OpenAICompatibleModel"]

logger = logging.getLogger(__name__)

#: Request timeout, conflict, too many requests, and a server in trouble: worth another try.
TRANSIENT = {408, 409, 429, 500, 502, 503, 504}


class RefuseRedirects(HTTPRedirectHandler):
    """urllib would send the Authorization header on to whatever host a redirect names."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def seconds_until(retry_after: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, be it a number or a date."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def answer_in(body: bytes) -> str:
    """The first choice's text in a chat completion.

    Raises ValueError where `body` isn't one.
    """
    try:
        text = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError) as error:
        start = body[:200].decode(errors="replace")
        raise ValueError(f"the answer is not a chat completion: {start!r}") from error
    if not isinstance(text, str):
        raise ValueError(
            f"the chat completion holds no text: {body[:200].decode(errors='replace')!r}"
        )
    return text


class OpenAICompatibleModel(SharedByCopies):
    """A model behind a server that speaks OpenAI's chat completions protocol.

    Parameters
    ----------
    base_url : str
        What stands before ``/chat/completions``, such as ``"http://localhost:8000/v1"``.
    model : str
        The server's name of the model.
    api_key : str, optional
        The key. It is never logged, shown or pickled: an unpickled client reads
        `api_key_variable` again.
    api_key_variable : str, optional
        Environment variable that holds the key, where `api_key` isn't given. Default
        ``"OPENAI_API_KEY"``; None says that the server needs no key.
    timeout : float, default=60.0
        Seconds to wait for the server, a try.
    max_retries : int, default=5
        Further tries after a failure that may pass: no connection, a time-out, an answer that
        isn't a chat completion, or one of the states 408, 409, 429, 500, 502, 503, 504.
    backoff : float, default=1.0
        Seconds before the first retry, doubled each time, less a random part of up to a half.
        A longer ``Retry-After`` of the server is honoured.
    max_wait : float, default=120.0
        Longest wait before a retry in seconds. A server that asks for more is an error.
    n_threads : int, default=1
        Requests under way at the same time.
    max_tokens_field : {"max_tokens", "max_completion_tokens"}, default="max_tokens"
        The field in which this server takes the longest answer.

    Raises
    ------
    ValueError
        If `base_url` isn't an HTTP address, or no key is found.

    Examples
    --------
    >>> from equipoise.language_models import OpenAICompatibleModel
    >>> OpenAICompatibleModel("http://localhost:8000/v1", "tiny", api_key="secret")
    OpenAICompatibleModel(base_url='http://localhost:8000/v1', model='tiny')
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        api_key_variable: str | None = "OPENAI_API_KEY",
        timeout: float = 60.0,
        max_retries: int = 5,
        backoff: float = 1.0,
        max_wait: float = 120.0,
        n_threads: int = 1,
        max_tokens_field: str = "max_tokens",
    ) -> None:
        address = urlsplit(base_url or "")
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(f"base_url={base_url!r}: allowed is an address as http://host:port/v1")
        if address.username or address.password or address.query:
            raise ValueError(
                "base_url holds a user, a password or a query; give the key as api_key"
            )
        if not model:
            raise ValueError(f"model={model!r}: the server's name of a model is needed")
        for name, value, least in (
            ("timeout", timeout, 1e-3),
            ("max_retries", max_retries, 0),
            ("backoff", backoff, 0),
            ("max_wait", max_wait, 0),
            ("n_threads", n_threads, 1),
        ):
            if not value >= least:
                raise ValueError(f"{name}={value!r}: allowed is a number of at least {least}")
        if max_tokens_field not in ("max_tokens", "max_completion_tokens"):
            raise ValueError(
                f"max_tokens_field={max_tokens_field!r}: allowed are 'max_tokens' and "
                "'max_completion_tokens'"
            )
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.api_key_variable = api_key_variable
        self.timeout = timeout
        self.max_retries = max_retries
        self.backoff = backoff
        self.max_wait = max_wait
        self.n_threads = n_threads
        self.max_tokens_field = max_tokens_field
        self._api_key = api_key or self._key_from_environment()

    @property
    def identity(self) -> str:
        """Who answers: the server's address and its name of the model."""
        return f"{self.base_url} {self.model}"

    def complete(
        self,
        prompts: Sequence[str],
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
    ) -> list[str]:
        """Answer each prompt with one request; see `LanguageModel.complete`.

        Parameters
        ----------
        prompts : sequence of str
            Sent as the user's message, each alone.
        max_tokens : int, default=256
            Longest answer, in the model's tokens.
        temperature : float, default=0.0
            As the server understands it.
        seed : int, optional
            Handed to the server, which may or may not heed it.
        stop : str or sequence of str, optional
            An answer ends before the first of these strings.

        Returns
        -------
        list of str
            One answer a prompt, in order.

        Raises
        ------
        LanguageModelError
            If the server refuses, or still fails after the last retry.
        """
        stops = stop_strings(prompts, max_tokens, temperature, stop)
        fields: dict[str, Any] = {
            "model": self.model,
            self.max_tokens_field: int(max_tokens),
            "temperature": float(temperature),
        }
        if seed is not None:
            fields["seed"] = int(seed)
        if stops:
            fields["stop"] = stops
        bodies = [
            json.dumps({**fields, "messages": [{"role": "user", "content": prompt}]}).encode()
            for prompt in prompts
        ]
        with ThreadPoolExecutor(self.n_threads) as pool:
            answers = [pool.submit(self._ask, body) for body in bodies]
            try:
                return [cut(answer.result(), stops) for answer in answers]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _ask(self, body: bytes) -> str:
        """Send one request until it is answered, refused, or out of tries."""
        for attempt in range(self.max_retries + 1):
            wait = self.backoff * 2**attempt * random.uniform(0.5, 1.0)
            try:
                return answer_in(self._post(body))
            except HTTPError as error:
                with error:
                    said = self._hide_key(error.read(500).decode(errors="replace"))
                failure = f"HTTP {error.code} {error.reason}: {said}"
                if error.code not in TRANSIENT:
                    raise LanguageModelError(f"{self.identity} refuses: {failure}") from error
                asked = seconds_until(error.headers.get("Retry-After")) or 0.0
                if asked > self.max_wait:
                    raise LanguageModelError(
                        f"{self.identity} asks to wait {asked:.0f} s, more than "
                        f"max_wait={self.max_wait}: {failure}"
                    ) from error
                wait = max(asked, wait)
            except (OSError, HTTPException, ValueError) as error:
                failure = self._hide_key(f"{type(error).__name__}: {error}")
            if attempt < self.max_retries:
                wait = min(wait, self.max_wait)
                logger.warning("%s: %s; again in %.1f s", self.identity, failure, wait)
                time.sleep(wait)
        raise LanguageModelError(
            f"{self.identity} gave no answer in {self.max_retries + 1} tries; the last: {failure}"
        )

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key}"
        request = Request(f"{self.base_url}/chat/completions", data=body, headers=headers)
        with build_opener(RefuseRedirects).open(request, timeout=self.timeout) as response:
            return response.read()

    def _hide_key(self, text: str) -> str:
        return text.replace(self._api_key, "***") if self._api_key else text

    def _key_from_environment(self) -> str | None:
        if self.api_key_variable is None:
            return None
        if not (key := os.environ.get(self.api_key_variable)):
            raise ValueError(
                f"no key for {self.base_url}: give api_key, set the environment variable "
                f"{self.api_key_variable}, or say api_key_variable=None for a server without keys"
            )
        return key

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_api_key"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._api_key = self._key_from_environment()

    def __repr__(self) -> str:
        return f"OpenAICompatibleModel(base_url={self.base_url!r}, model={self.model!r})"
