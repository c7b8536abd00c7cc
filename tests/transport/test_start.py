"""Late ranks: what others told while they met at the start is no news of the job's own calls."""

import threading
import time

import numpy as np

from weft.transport import collective
from weft.transport.group import Group
from weft.transport.local import LocalTransport, ranks
from weft.transport.monitor import Monitor
from weft.transport.native import Native
from weft.transport.session import Session


class Late(LocalTransport):
    """Gets what others told only once it waits in a call of the job's own."""

    started = False

    def notes(self):
        waits = self.waiting is not None and self.waiting.pending is not None
        return super().notes() if self.started and waits else []


def test_a_late_rank_takes_no_news_of_the_start_for_its_first_call(monkeypatch):
    monkeypatch.setattr(Session, "_join_memory", lambda *_: None)  # threads send messages
    told = []
    take = Monitor._take
    monkeypatch.setattr(Monitor, "_take", lambda self, note: (told.append(note), take(self, note)))
    first, other = ranks(2)
    late = Late(0, 2, first._post)
    outs = {}

    def run(transport, before, after):
        time.sleep(before)
        session = Session(transport, 20.0, Native(None, None, None))
        Late.started = transport is late or Late.started
        time.sleep(after)
        x = np.array([1.0])
        collective.all_reduce(session.world, x, x, "sum", "models: lengths")
        outs[transport.rank] = x[0]
        session.monitor.stop()

    threads = [
        threading.Thread(target=run, args=arguments)
        for arguments in ((other, 0.0, 0.6), (late, 0.3, 0.0))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    starts = [n for n in told if n["kind"] == "waiting" and n["what"].startswith("hosts of ranks")]
    assert starts, "the late rank was told nothing: the test shows nothing"
    assert late.failure is None and outs == {0: 2.0, 1: 2.0}
    assert starts[0]["group"] != Group(late, [0, 1]).number
