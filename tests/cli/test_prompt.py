"""The prompt of `askline ask` on a real pseudo-terminal of 80 columns."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

import fcntl
import pty
import struct
import termios

pytestmark = pytest.mark.slow

HOURS = "In winter the museum is open until four. In summer it is open until seven.\n"
CTRL_C, CTRL_D = "\x03", "\x04"
_SECONDS = 40.0


class Terminal:
    """`askline …` in a child process whose terminal is ours."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                command = [sys.executable, "-m", "askline", *arguments]
                os.execve(sys.executable, command, os.environ | environment)
            finally:
                os._exit(1)
        size = struct.pack("HHHH", 40, 80, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
        self._unread = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def leave(self) -> int:
        """Press Ctrl-D at the prompt. Return the exit code."""
        self.read_until("\n? ")
        self.type(CTRL_D)
        return self.exit_code()

    def read_until(self, expected: str) -> str:
        """What is printed up to this text."""
        give_up_at = time.monotonic() + _SECONDS
        while expected not in self._unread:
            ready, _, _ = select.select([self._terminal], [], [], give_up_at - time.monotonic())
            assert ready, f"{expected!r} was not printed, but {self._unread!r}"
            try:
                found = os.read(self._terminal, 65_536)
            except OSError:  # the process has ended
                found = b""
            assert found, f"{expected!r} was not printed, but {self._unread!r}"
            self._unread += found.decode().replace("\r\n", "\n")
        before, _, self._unread = self._unread.partition(expected)
        return before + expected

    def exit_code(self) -> int:
        """Wait for the end; `rest` has what was printed."""
        give_up_at = time.monotonic() + _SECONDS
        try:
            while select.select([self._terminal], [], [], give_up_at - time.monotonic())[0]:
                self._unread += os.read(self._terminal, 65_536).decode().replace("\r\n", "\n")
            pytest.fail(f"it did not end, but printed {self._unread!r}")
        except OSError:  # the process has ended
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    @property
    def rest(self) -> str:
        return self._unread

    def close(self) -> None:
        os.close(self._terminal)


@pytest.fixture
def museum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent.parent))
    folder = tmp_path / "museum"
    folder.mkdir()
    (folder / "hours.txt").write_text(HOURS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def prompt(museum: Path) -> Iterator[Terminal]:
    terminal = Terminal("ask", "museum")
    terminal.read_until("2 sentences in museum. Ask a question, or type :help.\n")
    terminal.read_until("? ")
    yield terminal
    terminal.close()


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_questions_follow_ups_and_commands(prompt: Terminal, tmp_path: Path) -> None:
    prompt.type("When is the museum open in winter?\n")
    first = prompt.read_until(" sentences")
    assert "\x1b[2mmuseum/hours.txt:1" in first
    assert "In winter the museum is open until" in _plain(first)
    assert "> " not in _plain(first)
    prompt.type("and in summer?\n")
    prompt.read_until("Understood as: When is the museum open in summer?")
    prompt.read_until(" sentences")
    prompt.type(":context many\n")
    prompt.read_until(":context needs a number, 0 or more, got 'many'.\n")
    prompt.type(":mor\n")
    prompt.read_until("There is no command ':mor'. :help lists them.\n")
    prompt.type(":top 1\n")
    prompt.read_until("\n? ")
    prompt.type(":more\n")
    prompt.read_until("There are no more answers.\n")
    prompt.type(":help\n")
    shown = prompt.read_until(":quit ")
    assert all(len(line) <= 80 for line in shown.splitlines())
    prompt.type(":quit\n")
    assert prompt.exit_code() == 0
    history = (tmp_path / "state" / "askline" / "history").read_text("utf-8")
    assert "When is the museum open in winter?\nand in summer?\n" in history


def test_ctrl_c_cancels_a_line_and_ctrl_d_leaves(prompt: Terminal) -> None:
    prompt.type("When is the mus")
    prompt.read_until("When is the mus")
    prompt.type(CTRL_C)
    prompt.read_until("Ctrl-D leaves.")
    assert prompt.leave() == 0
    assert "Abort" not in prompt.rest
    assert "Traceback" not in prompt.rest


def test_ctrl_c_cancels_an_answer(prompt: Terminal) -> None:
    prompt.type("When is the museum open in winter?\n")
    time.sleep(0.02)
    os.kill(prompt.pid, signal.SIGINT)
    # It may come before or while the question is answered, or after it on a busy machine.
    time.sleep(0.5)
    prompt.type("When is the museum open in summer?\n")
    prompt.read_until("\x1b[1muntil seven")  # bold: the answer to this question
    prompt.read_until(" sentences")
    assert prompt.leave() == 0
    assert "Traceback" not in prompt.rest


def test_changed_files_are_read_on_request(prompt: Terminal, museum: Path) -> None:
    (museum / "prices.txt").write_text("Tickets cost nine euros.\n", encoding="utf-8")
    prompt.type(":refresh\n")
    prompt.read_until("3 sentences in museum.\n")
    prompt.type("What do tickets cost?\n")
    assert "Tickets cost" in _plain(prompt.read_until(" sentences"))
    assert prompt.leave() == 0


def test_the_prompt_works_where_the_history_cannot_be_written(museum: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder", encoding="utf-8")
    terminal = Terminal("ask", "museum", NO_COLOR="1")
    terminal.type("When is the museum open in winter?\n")
    shown = terminal.read_until(" s from 2 sentences")
    assert "\n> In winter the museum is open until four." in shown
    assert terminal.leave() == 0
    terminal.close()


def test_without_a_source_the_terminal_user_is_told_what_to_name(museum: Path) -> None:
    terminal = Terminal("ask")
    assert terminal.exit_code() == 2
    assert "Give PATHs to read, --index DIR or --retriever URL" in terminal.rest
    terminal.close()
