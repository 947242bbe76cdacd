"""
The HTTP service: rerank routes for the clients of other services, `/v1/ask`, and a web page.

The web process (`server`, `app`, `routes`) only receives and answers requests. Ranking and all work
on the index happen in worker processes: `worker_pool` starts them and queues their jobs, `messages`
defines what is sent, `worker` and `job_handler` run in them. So `/health` answers at any load.

Modules of the worker processes must not import the web framework, which would slow their start.
"""

from __future__ import annotations
