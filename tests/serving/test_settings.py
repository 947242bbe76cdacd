from __future__ import annotations

import pytest

from askline.errors import InputError
from askline.serving import Limits, Settings
from askline.serving.api_keys import Keys
from askline.serving.settings import check_exposure, is_loopback

KEYS = Keys.of(["a-long-and-random-key"])


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LocalHost.", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.4", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_listening_for_others_wants_a_key_or_a_word() -> None:
    with pytest.raises(InputError, match=r"0\.0\.0\.0 can be reached by others .* --open"):
        check_exposure(Settings(host="0.0.0.0"))
    check_exposure(Settings(host="0.0.0.0", keys=KEYS))
    check_exposure(Settings(host="0.0.0.0", may_be_open=True))
    check_exposure(Settings())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"port": 70_000}, "port must be from 0 to 65535"),
    ],
    ids=["workers", "port"],
)
def test_settings_are_checked(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings(**wrong)  # type: ignore[arg-type]


def test_limits_are_above_0() -> None:
    with pytest.raises(InputError, match="The limit queue must be above 0, got 0"):
        Limits(queue=0)
