"""Where the `extgate` command begins: a hook call goes its short way, everything else loads the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `extgate`."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and len(words) > 1 and not {"-h", "--help"} & set(words):
        import os

        from extgate import hook_client as client

        os._exit(client.main(words[1:]))
    from extgate.cli.main import main as everything

    everything()


if __name__ == "__main__":
    main()
