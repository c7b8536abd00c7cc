"""A parameter server and a worker in processes of their own, shared by all tests here."""

import pytest

from tests.cluster.processes import Cluster


@pytest.fixture(scope="session")
def cluster():
    made = Cluster({"ps": 1, "worker": 1})
    yield made
    codes = made.stop()
    assert codes == [143, 143]  # SIGTERM ends `join`
