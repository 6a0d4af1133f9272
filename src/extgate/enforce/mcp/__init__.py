"""The MCP gateway: messages are judged and relayed, not re-serialised."""
