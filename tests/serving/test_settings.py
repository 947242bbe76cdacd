from __future__ import annotations

import pytest

from askline.errors import InputError
from askline.serving.auth import ApiKeys
from askline.serving.settings import Settings, check_exposure

KEYS = ApiKeys.from_keys(["a-long-and-random-key"])


def test_other_machines_are_allowed_only_with_a_key_or_explicitly() -> None:
    with pytest.raises(InputError, match=r"Other machines can reach 0\.0\.0\.0 .* --open"):
        check_exposure(Settings(host="0.0.0.0"))
    check_exposure(Settings(host="0.0.0.0", keys=KEYS))
    check_exposure(Settings(host="0.0.0.0", allow_anyone=True))
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
