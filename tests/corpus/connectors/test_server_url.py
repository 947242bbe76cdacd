from __future__ import annotations

import pytest

from askline.corpus.connectors.server_url import ServerUrl
from askline.errors import InputError


def test_a_url_is_split_into_parts() -> None:
    address = ServerUrl.parse("opensearch://ann:p%40ss@search.example:9201/books?text=body&tls=no")
    assert (address.scheme, address.host, address.port) == ("opensearch", "search.example", 9201)
    assert (address.path, address.user, address.password) == ("books", "ann", "p@ss")
    assert address.options == {"text": "body", "tls": "no"}


@pytest.mark.parametrize("url", ["postgresql://ann:pw@h/db", "postgresql://ann@h/db?password=pw"])
def test_the_url_is_shown_without_user_and_password(url: str) -> None:
    address = ServerUrl.parse(url)
    assert address.password == "pw"
    assert str(address) == "postgresql://h/db"
    assert "pw" not in repr(address)
    assert "ann" not in repr(address)
    assert address.without_password("no pw\nfor ann") == "no *** for ann"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://h/db", "No kind of server 'mysql'. Known: elasticsearch, opensearch"),
        ("opensaerch://h/i", "Did you mean 'opensearch'?"),
        ("notes.txt", "No kind of server ''"),
        ("postgresql://ann:se:cret@h/db", None),
        ("postgresql://ann:pw@h:54x2/db", "The port in the URL must be a number"),
    ],
    ids=["kind", "misspelt", "no address", "colon in the password", "port"],
)
def test_invalid_urls_are_refused(url: str, message: str | None) -> None:
    if message is None:
        assert ServerUrl.parse(url).password == "se:cret"
        return
    with pytest.raises(InputError, match=message) as raised:
        ServerUrl.parse(url)
    assert "pw" not in str(raised.value).replace("password", "")


def test_options_are_checked_by_type_and_name() -> None:
    address = ServerUrl.parse("opensearch://h/i?timeout=2.5&tls=Yes&tex=body&texts=none")
    assert address.number_option("timeout", 10, minimum=0.1) == 2.5
    assert address.number_option("other", 10, minimum=0.1) == 10
    assert address.flag_option("tls", False)
    assert not address.flag_option("other", False)
    with pytest.raises(InputError, match="texts must be a number of at least 1, got 'none'"):
        address.number_option("texts", 50, minimum=1)
    with pytest.raises(InputError, match="timeout must be yes or no, got '2.5'"):
        address.flag_option("timeout", True)
    with pytest.raises(InputError, match="No option 'tex'.*Did you mean 'text'?"):
        address.check_options({"text", "timeout", "tls", "texts"})
