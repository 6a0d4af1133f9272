"""A chat model from its name, as LangChain writes it, at whatever endpoint the environment names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extgate.core.names import show
from extgate.errors import WorkspaceError

_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_URLS = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
_STARTS = {"gpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude": "anthropic"}
_NO_KEY = "not-needed"
"""What is sent as key to an endpoint of one's own that was given none."""


def make_model(name: str, environ: Mapping[str, str]) -> Any:
    """The model of `provider:name`. Raises WorkspaceError: no such model can be made, its package or key is missing."""
    provider, colon, rest = name.partition(":")
    if not colon:
        provider, rest = next((p for start, p in _STARTS.items() if name.startswith(start)), ""), name
    options = _options(provider, environ)
    try:
        from langchain.chat_models import init_chat_model

        return init_chat_model(rest, model_provider=provider or None, **options)
    except ImportError as error:
        package = f"langchain-{provider}" if provider else "the provider's package"
        raise WorkspaceError(f"the model `{show(name)}` needs {package} ({error})", fix=f"install {package}") from None
    except ValueError as error:
        first_line = show(str(error).partition("\n")[0][:300])
        raise WorkspaceError(f"no model can be made of `{show(name)}`: {first_line}", fix=FORM) from None


FORM = "write it as `openai:NAME`, `anthropic:NAME` or another provider that LangChain knows"


def _options(provider: str, environ: Mapping[str, str]) -> dict[str, Any]:
    if provider not in _KEYS:
        return {}
    url, key = environ.get(_URLS[provider], ""), environ.get(_KEYS[provider], "")
    if not key and not url:
        raise WorkspaceError(f"{_KEYS[provider]} is not set", fix=f"set it, or {_URLS[provider]} to your own endpoint")
    return {"api_key": key or _NO_KEY, **({"base_url": url} if url else {})}
