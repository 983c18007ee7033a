"""The MCP server: tools, files and notes for other programs, over HTTP at /mcp and over stdio (`manage.py mcp`)."""
