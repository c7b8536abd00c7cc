"""Resources by name, and cancellation."""

import pytest

from weft.errors import ArgumentError, CancelledError, SharingError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Cancellation, Containers, Resource, register


@register("CounterForTests")
class Counter(Resource):
    family = what = "counter"
    value = 0
    closed = False

    def call(self, method, inputs, options, cancel):
        self.value += 1
        return [self.value]

    def close(self):
        self.closed = True


def spec(name="a", container="", **options):
    return ResourceSpec("CounterForTests", name, container, tuple(options.items()))


def test_the_first_call_makes_the_resource_and_later_ones_mean_it():
    containers = Containers()
    counts = [
        containers.call(s, "", [], {}, Cancellation())[0] for s in [spec(), spec("b"), spec()]
    ]
    assert counts == [1, 1, 2]
    assert containers.get(spec(container="other")) is not containers.get(spec())


def test_other_properties_and_unknown_kinds_are_refused():
    containers = Containers()
    containers.get(spec(capacity=3))
    text = "Shared counter 'a' has capacity 3 but requested capacity was 4"
    with pytest.raises(SharingError, match=text):
        containers.get(spec(capacity=4))
    with pytest.raises(ArgumentError, match="got kind 'Nonsense'"):
        containers.get(ResourceSpec("Nonsense", "a"))


def test_reset_closes_and_forgets_the_containers_named():
    containers = Containers()
    kept, gone = containers.get(spec(container="kept")), containers.get(spec(container="gone"))
    containers.reset(["gone"])
    assert (kept.closed, gone.closed) == (False, True)
    assert containers.get(spec(container="kept")) is kept
    assert containers.get(spec(container="gone")) is not gone
    containers.reset()
    assert containers.names() == [] and kept.closed


def test_cancellation_reaches_callbacks_and_steps_once():
    session, seen = Cancellation(), []
    withdraw = session.add(seen.append)
    session.add(lambda error: seen.append("kept"))
    ended = Cancellation(session)
    ended.close()
    step = Cancellation(session)
    withdraw()
    session.cancel(CancelledError("stop"))
    session.cancel(CancelledError("again"))
    assert seen == ["kept"]
    assert step.cancelled and not ended.cancelled
    with pytest.raises(CancelledError, match="stop"):
        step.check()
    session.add(seen.append)
    assert str(seen[1]) == "stop"
    with pytest.raises(CancelledError, match="stop"):
        Containers().call(spec(), "", [], {}, step)


@pytest.mark.parametrize("end", [Cancellation.close, Cancellation.cancel])
def test_what_has_ended_leaves_nothing_with_its_parent(end):
    session = Cancellation()
    end(Cancellation(session))
    assert not session._callbacks
    session.cancel()
    assert Cancellation(session).cancelled
