"""
An MCP client: what an assistant does with the tools `ask`, `show` and `rank` of `askline mcp`.

    pip install '.[mcp]'
    python examples/mcp_client.py

The client starts the server as a process and talks to it over its standard input and output, as
desktop assistants do. Their configuration has the same command: `askline mcp --root FOLDER`.
"""

import asyncio
import os
import sys
from pathlib import Path

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

HANDBOOK = Path(__file__).parent / "handbook"
TEXTS = ["It rains.", "The café opens at ten.", "The museum has a garden."]


async def main() -> None:
    arguments = ["-m", "askline", "mcp", "--root", str(HANDBOOK)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        tools = (await client.list_tools()).tools
        print("Tools:", ", ".join(tool.name for tool in tools))

        question = {"question": "How much is the fee for a late book?", "paths": ["lending.md"]}
        found = (await client.call_tool("ask", question)).structured_content
        best = found["answers"][0]
        print(f"ask:  {best['text']} ({best['relevance_score']:.0%})")

        place = {"document": best["document"]}
        shown = (await client.call_tool("show", place)).structured_content
        headings = [own["text"] for own in shown["sentences"] if own["is_heading"]]
        print(f"show: {len(shown['sentences'])} sentences below {', '.join(headings)}")

        texts = {"question": "When can I get a coffee?", "documents": TEXTS}
        ranked = (await client.call_tool("rank", texts)).structured_content
        print(f"rank: {ranked['results'][0]['text']}")

        outside = await client.call_tool("ask", {**question, "paths": ["/etc/passwd"]})
        print(f"A path outside the root is refused: {outside.is_error}")


if __name__ == "__main__":
    asyncio.run(main())
