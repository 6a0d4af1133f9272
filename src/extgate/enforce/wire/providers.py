"""The providers that the wire serves, one row each."""

from __future__ import annotations

from extgate.enforce.wire import anthropic, gemini, openai
from extgate.enforce.wire.provider import Provider

PROVIDERS: dict[str, Provider] = {one.name: one for one in (anthropic.PROVIDER, openai.PROVIDER, gemini.PROVIDER)}
