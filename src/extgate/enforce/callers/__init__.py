"""Who calls: what a request proves of its caller, and which agents that caller may be."""
