"""
Streaming: answers to many questions, each as soon as it is found.

    pip install '.[serve]'
    python examples/streaming.py

First in Python: `rank_stream` is an iterator over the results of any number of requests. Then over
HTTP: `/v1/ask/stream` of `askline serve` sends one line of JSON per question. A client that leaves
early cancels what is not answered yet.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import askline

HANDBOOK = Path(__file__).parent / "handbook"
QUESTIONS = ["When is the safety course?", "What does a lost card cost?", "Where are computers?"]


def requests() -> Iterator[tuple[str, list[str]]]:
    """Read when needed: this could be a large file."""
    texts = ["The course is held every Thursday.", "A lost card is replaced for five euros."]
    for question in QUESTIONS[:2]:
        print(f"  read: {question}")
        yield question, texts


def ask_service(url: str) -> None:
    body = json.dumps({"questions": QUESTIONS, "top_k": 1}).encode()
    request = Request(f"{url}/v1/ask/stream", body, {"Content-Type": "application/json"})
    with urlopen(request) as response:
        for line in response:
            found = json.loads(line)
            best = found["response"]["answers"][0]
            print(f"  {QUESTIONS[found['index']]} {best['text']} ({best['source']['document']})")


def main() -> None:
    print("In Python:")
    for hits in askline.load("cosinet").rank_stream(requests(), batch_size=1):
        print(f"  best: {hits[0].text}")
    print("From the service:")
    with tempfile.TemporaryDirectory() as folder:
        askline.Corpus.open(folder).add(HANDBOOK)
        command = [sys.executable, "-m", "askline", "serve", "--index", folder, "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
            listening = next(line for line in service.stderr if line.startswith("Listening"))
            ask_service(re.search(r"http://\S+", listening)[0])
            service.terminate()


if __name__ == "__main__":
    main()
