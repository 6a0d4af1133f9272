"""Finding what is installed: skills, MCP servers, plugins, built-in tools."""
