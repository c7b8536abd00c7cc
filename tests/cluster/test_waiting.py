"""Calls that are given up at the worst moment: before they arrive, or as their answer does."""

import threading
from types import SimpleNamespace

import pytest
from patience import LIMIT

from weft.cluster.links import Link, Links
from weft.cluster.rpc import Message, RpcOptions
from weft.cluster.spec import ClusterSpec
from weft.cluster.waiting import Calls
from weft.errors import CancelledError
from weft.host.crew import Crew
from weft.resource.base import Cancellation


def test_given_up_before_it_arrives():
    crew = Crew("test-waiting")
    calls, ended = Calls(crew), threading.Event()
    try:
        calls.give_up(Message("give up", {"call": "a/1"}))

        def wait(cancel):
            cancel.add(lambda error: ended.set())
            assert ended.wait(LIMIT)
            cancel.check()

        future = calls.start(Message("call", {"call": "a/1"}), Cancellation(), wait)
        with pytest.raises(CancelledError):
            future.result(LIMIT)
    finally:
        ended.set()
        crew.shutdown()


def test_a_connection_that_is_made_as_all_are_closed(monkeypatch):
    closed = []
    links = Links(ClusterSpec({"ps": ["localhost:1"]}), "/job:worker", RpcOptions())

    def joined(task, timeout):
        links.close()
        return Link(task, SimpleNamespace(close=lambda: closed.append(task)), "1", {})

    monkeypatch.setattr(links, "_joined", joined)
    links.to("/job:ps")
    assert closed == ["/job:ps"]
