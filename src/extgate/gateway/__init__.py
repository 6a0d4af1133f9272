"""A process that serves agents to others: its settings, who may call, limits, replicas, addresses, and the wire."""
