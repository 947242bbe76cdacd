"""A server that holds the texts, for a worker: asked through its connector, never written to."""

from __future__ import annotations

from ..corpus import Found
from ..corpus.connectors import Connector, connect
from ..errors import AsklineError

__all__ = ["Remote"]


class Remote:
    """
    A retriever that connects anew after a question was called off half way.

    What the server would still have sent for it must not meet the next question.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._link: Connector | None = connect(url)
        self._name, self._size = str(self._link), len(self._link)

    def retrieve(self, question: str, k: int) -> list[Found]:
        """At most `k` sentences out of the texts that the server finds, best first."""
        link = self._link = self._link or connect(self._url)
        try:
            return link.retrieve(question, k)
        except AsklineError:
            raise
        except BaseException:
            self._link = None
            link.close()
            raise

    def neighbours(self, found: Found) -> tuple[str, str]:
        """The sentence before and the sentence after in the same text."""
        return self._link.neighbours(found) if self._link else ("", "")

    def __len__(self) -> int:
        return self._size

    def __str__(self) -> str:
        return self._name
