"""`askline mcp` with the client of the MCP SDK, over stdio and HTTP, and the conformance kit."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import askline
from askline import Corpus
from askline.integrations.mcp import create_server

TEXTS = {
    "emma.txt": "Emma is a novel. Jane Austen wrote Emma in 1815. It sold well.\n",
    "bridge.txt": "The bridge is long. It opened in 1932.\n",
}
Session = Callable[[Callable[[Client], Awaitable[Any]]], Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def index(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    with Corpus.open(folder) as corpus:
        corpus.add([root])
    return folder


@pytest.fixture(scope="module")
def arguments(index: Path, root: Path) -> list[str]:
    return ["-m", "askline", "mcp", "--index", str(index), "--root", str(root)]


@pytest.fixture(scope="module")
def url(arguments: list[str]) -> Iterator[str]:
    command = [sys.executable, *arguments, "--http", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(r"Listening on (http://127\.0\.0\.1:\d+/mcp)\n", line)
        assert found, line
        yield found[1]
        process.terminate()
        assert process.wait(20) is not None


@pytest.fixture(params=["stdio", "http"])
def session(request: pytest.FixtureRequest, arguments: list[str]) -> Session:
    """Run a function with a connected client, over each transport."""
    target: Any
    if request.param == "http":
        target = request.getfixturevalue("url")
    else:
        target = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    def run(use: Callable[[Client], Awaitable[Any]]) -> Any:
        async def connected() -> Any:
            server = target if isinstance(target, str) else stdio_client(target)
            async with Client(server) as client:
                return await use(client)

        return asyncio.run(connected())

    return run


def test_tools_are_listed_with_schemas(session: Session) -> None:
    async def use(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in session(use)}
    assert set(tools) == {"ask", "rank", "show"}
    for tool in tools.values():
        assert tool.annotations.read_only_hint is True
        assert tool.description
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
    assert tools["ask"].input_schema["required"] == ["question"]


def test_every_tool_answers_by_its_schema(session: Session) -> None:
    async def use(client: Client) -> Any:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}

        async def call(name: str, **arguments: Any) -> Any:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result.content
            jsonschema.validate(result.structured_content, tools[name].output_schema)
            return result.structured_content

        asked = await call("ask", question="Who wrote Emma?")
        best = asked["answers"][0]
        around = await call(
            "show", document=best["document"], start=best["start"], before=1, count=2
        )
        ranked = await call(
            "rank", question="Who wrote Emma?", documents=["Emma.", "Austen wrote it."], top_k=1
        )
        return asked, around, ranked

    asked, around, ranked = session(use)
    best = asked["answers"][0]
    assert asked["answered"] is best["is_answer"] is True
    assert (best["text"], best["phrase"]) == ("Jane Austen wrote Emma in 1815.", "Jane Austen")
    assert TEXTS["emma.txt"][best["start"] : best["end"]] == best["text"]
    assert [each["text"] for each in around["sentences"]] == ["Emma is a novel.", best["text"]]
    assert around["total"] == 3
    assert [each["index"] for each in ranked["results"]] == [1]
    assert 0 <= ranked["results"][0]["relevance_score"] <= 1


def test_files_inside_the_roots_can_be_asked_and_shown(session: Session, root: Path) -> None:
    async def use(client: Client) -> Any:
        asked = await client.call_tool(
            "ask", {"question": "When did it open?", "paths": ["bridge.txt"]}
        )
        document = asked.structured_content["answers"][0]["document"]
        shown = await client.call_tool("show", {"document": document})
        return asked.structured_content, shown.structured_content

    asked, shown = session(use)
    assert asked["answers"][0]["document"] == os.path.realpath(root / "bridge.txt")
    assert asked["answers"][0]["phrase"] == "1932"
    assert [each["text"] for each in shown["sentences"]] == [
        "The bridge is long.",
        "It opened in 1932.",
    ]


def test_a_question_without_an_answer_says_so(session: Session) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool("ask", {"question": "What does zinc cost in Zanzibar?"})

    assert session(use).structured_content["answered"] is False


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("ask", {"question": " "}, "question must not be empty"),
    ("ask", {"question": "Who?", "paths": []}, "at least one file"),
    ("ask", {"question": "Who?", "top_k": 0}, "greater than or equal to 1"),
    ("show", {"document": "nothing.txt"}, "inside the roots"),
    ("rank", {"question": "Who?"}, "documents"),
]


def test_wrong_arguments_are_errors_that_a_model_can_read(session: Session) -> None:
    async def use(client: Client) -> Any:
        return [await client.call_tool(tool, given) for tool, given, _ in WRONG]

    for result, (_, _, message) in zip(session(use), WRONG, strict=True):
        assert result.is_error
        assert message in result.content[0].text


def test_the_server_says_what_it_is(session: Session) -> None:
    async def use(client: Client) -> Any:
        return client.server_info, client.server_capabilities, client.instructions

    info, capabilities, instructions = session(use)
    assert (info.name, info.version) == ("askline", askline.__version__)
    assert capabilities.tools is not None
    assert "`ask`" in instructions


def test_an_unknown_tool_is_an_error(session: Session) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool("delete", {})

    result = session(use)
    assert result.is_error
    assert "delete" in result.content[0].text


def test_a_canceled_call_leaves_the_server_usable(session: Session) -> None:
    async def use(client: Client) -> Any:
        texts = [f"Line {number} of the log." for number in range(2_000)]
        slow = asyncio.ensure_future(
            client.call_tool("rank", {"question": "Who wrote Emma?", "documents": texts})
        )
        await asyncio.sleep(0.05)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return await client.call_tool("show", {"document": "emma.txt"})

    assert session(use).structured_content["total"] == 3


def test_calls_at_the_same_time_get_their_own_answers(session: Session) -> None:
    names = [f"Ann {letter}." for letter in "ABCDEFGH"]

    async def use(client: Client) -> Any:
        calls = [
            client.call_tool("rank", {"question": "Who?", "documents": [name, "Nobody."]})
            for name in names
        ]
        return await asyncio.gather(*calls)

    for name, result in zip(names, session(use), strict=True):
        assert name in {each["text"] for each in result.structured_content["results"]}


def call(server: Any, tool: str, **arguments: Any) -> Any:
    async def use() -> Any:
        async with Client(server) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(use())


@pytest.fixture
def outside(tmp_path: Path, root: Path) -> Iterator[list[str]]:
    """Paths that lead out of the root, by every way that there is."""
    secret = tmp_path / "secret.txt"
    secret.write_text("The password is 1234.", "utf-8")
    link = root / "link.txt"
    link.symlink_to(secret)
    sibling = Path(f"{root}-other")
    sibling.mkdir(exist_ok=True)
    (sibling / "a.txt").write_text("The password is 1234.", "utf-8")
    yield [
        str(secret),
        "link.txt",
        os.path.relpath(secret, root),
        f"{root}/../{sibling.name}/a.txt",
        str(sibling / "a.txt"),
        "/etc/passwd",
        "~/.profile",
        "..",
        "/",
        "a\0b",
    ]
    link.unlink()


def test_paths_outside_the_roots_are_refused(outside: list[str], root: Path, index: Path) -> None:
    server = create_server(index, roots=[root], ranker="jaccard")
    for path in outside:
        for arguments in ({"tool": "ask", "paths": [path]}, {"tool": "show", "document": path}):
            asked = {"question": "What is the password?"} if "paths" in arguments else {}
            result = call(server, **arguments, **asked)
            assert result.is_error, path
            assert "inside the roots of this server" in result.content[0].text
            assert "1234" not in result.content[0].text


def test_a_link_in_a_folder_does_not_lead_out(outside: list[str], root: Path) -> None:
    server = create_server(roots=[root], ranker="jaccard")
    found = call(server, "ask", question="What is the password?", paths=["."]).structured_content
    assert "1234" not in str(found)


def test_without_roots_no_file_is_read(index: Path, root: Path) -> None:
    server = create_server(index, ranker="jaccard")
    path = str(root / "emma.txt")
    asked = call(server, "ask", question="Who?", paths=[path])
    assert "reads no files" in asked.content[0].text
    shown = call(server, "show", document=path)
    assert "No document" in shown.content[0].text


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("The door is red.", "utf-8")
    server = create_server(roots=[tmp_path], ranker="jaccard")
    question = {"question": "What colour is the door?", "paths": ["a.txt"]}
    first = call(server, "ask", **question).structured_content["answers"][0]["text"]
    file.write_text("The door is blue now.", "utf-8")
    second = call(server, "ask", **question).structured_content["answers"][0]["text"]
    assert (first, second) == ("The door is red.", "The door is blue now.")


def test_listing_the_tools_loads_no_model(index: Path) -> None:
    code = f"""
import asyncio, sys
from mcp.client.client import Client
from askline.integrations.mcp import create_server
async def main():
    async with Client(create_server({str(index)!r})) as client:
        print(len((await client.list_tools()).tools), "onnxruntime" in sys.modules)
        await client.call_tool("ask", {{"question": "Who wrote Emma?"}})
        print("onnxruntime" in sys.modules)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "False", "True"]


@pytest.mark.parametrize("header", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_requests_of_foreign_web_pages_are_refused(url: str, header: dict[str, str]) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}
    found = httpx2.post(url, json=body, headers=accept | header)
    assert found.status_code in (403, 421)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--http", "--host", "0.0.0.0"], "open to other machines. Add --open"),
        (["--index", "no-such-folder"], "no-such-folder"),
        (["--index", "."], "No index in ."),
    ],
)
def test_wrong_options_are_refused(options: list[str], message: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "askline", "mcp", *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode in (1, 2)
    assert message in done.stderr


CONFORMANCE = Path(os.environ.get("ASKLINE_MCP_CONFORMANCE") or "node_modules").absolute()
needs_kit = pytest.mark.skipif(
    not CONFORMANCE.exists(), reason="npm is missing: `make` installs no kit"
)
SCENARIOS = ["server-initialize", "ping", "tools-list", "tools-call-error", "caching"]
"""For servers in general; the others call tools, resources and prompts of a special test server."""
HTTP_SCENARIOS = [
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "http-header-validation",
    "dns-rebinding-protection",
]
"""About HTTP itself."""


@pytest.fixture(scope="module")
def bridged(arguments: list[str]) -> Iterator[str]:
    """
    The address of a bridge to a server over stdio, because the kit can only open an address.

    The bridge starts a server per session, and passes each message on as it is.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [f"{CONFORMANCE}/node/bin/node", f"{CONFORMANCE}/.bin/supergateway", "--port"]
    given = ["--stdio", shlex.join([sys.executable, *arguments]), "--stateful"]
    transport = ["--outputTransport", "streamableHttp", "--logLevel", "none"]
    with subprocess.Popen([*command, str(port), *given, *transport]) as bridge:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert bridge.poll() is None
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        bridge.terminate()
        bridge.wait(20)


def _conformance(address: str, scenario: str) -> str:
    command = [f"{CONFORMANCE}/node/bin/node", f"{CONFORMANCE}/.bin/conformance", "server"]
    done = subprocess.run(
        [*command, "--url", address, "--scenario", scenario],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout + done.stderr


@needs_kit
@pytest.mark.parametrize("scenario", SCENARIOS + HTTP_SCENARIOS)
def test_conformance_over_http(url: str, scenario: str) -> None:
    found = _conformance(url, scenario)
    assert re.search(r"Passed: (\d+)/\1, 0 failed, 0 warnings", found), found


@needs_kit
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_conformance_over_stdio(bridged: str, scenario: str) -> None:
    found = _conformance(bridged, scenario)
    assert re.search(r"Passed: (\d+)/\1, 0 failed, 0 warnings", found), found


@needs_kit
def test_conformance_without_sessions(url: str) -> None:
    """All checks but those that need a tool of the special test server."""
    found = _conformance(url, "server-stateless")
    failed = found.partition("=== Failed Checks ===")[2]
    errors = re.findall(r"^ +Error: (.*)$", failed, re.MULTILINE)
    assert len(errors) == 2, found
    assert all("test_missing_capability" in error for error in errors), errors
    assert re.search(r"Passed: 26/28, 2 failed", found), found


def test_a_missing_package_names_the_install_command() -> None:
    code = "import sys; sys.modules['mcp'] = None\nimport askline.integrations.mcp"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtraError: The MCP server needs more packages. Run: " in done.stderr


def test_the_docs_run(run_docs: Callable[[str], None]) -> None:
    run_docs("MCP")
