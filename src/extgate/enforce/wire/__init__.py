"""The wire: a relay to a model's provider that an agent is pointed at by its base URL, so that nobody has to change it.

`spans` reads JSON by its places in the bytes, `events` cuts streams; `clients` knows the agent programs, `judge` asks
the gate about names, `turn` holds a request and its answer together; `provider` says what a dialect is, `providers`
lists them; `front` does the I/O.
"""
