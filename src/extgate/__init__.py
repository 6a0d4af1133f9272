"""extgate: what may this agent see and use?"""

__version__ = "0.1.0"
