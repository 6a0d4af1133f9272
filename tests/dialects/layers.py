"""What is visible under several profiles at once, each a layer of one agent."""

from __future__ import annotations

import json
from typing import Any

from extgate import Decider, Document, Profile, read_agent
from extgate.discover.inventory_file import load_inventory


def visible_under_all(profiles: list[Any], inventory: dict[str, Any]) -> list[str]:
    """Ids that stay visible when every one of these profiles is a layer, sorted."""
    layers = tuple(
        read_agent(Document(path=f"agents/layer{n}.json", text=json.dumps(profile)))
        for n, profile in enumerate(profiles)
    )
    decider = Decider(Profile(id="layered", layers=layers), load_inventory(json.dumps(inventory), "inventory.json"))
    return sorted(d.extension.id for d in decider.decisions if d.visible)
