"""TLS: certificates of servers and of clients."""

import certificates
import pytest
from test_security import answers, echo

from weft import errors
from weft.cluster.rpc import Listener, RpcOptions, connect


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of two authorities, and of a server's and a client's certificates by the first."""
    folder = tmp_path_factory.mktemp("certificates")
    first, second = certificates.make_key(1), certificates.make_key(2)
    texts = {
        "authority": certificates.make_certificate("weft-ca", first, "weft-ca", first),
        "other": certificates.make_certificate("other-ca", second, "other-ca", second),
        "server": certificates.make_certificate("ps", second, "weft-ca", first, ["localhost"]),
        "named": certificates.make_certificate("ps", second, "weft-ca", first, ["ps.cluster"]),
        "key": certificates.private(second),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: str(folder / name) for name in texts}


def test_tls(files):
    server = RpcOptions(certificate=files["server"], key=files["key"], token="t")
    with Listener("127.0.0.1:0", echo, server) as listener:
        for shared in (False, True):
            client = RpcOptions(authority=files["authority"], token="t", shared_memory=shared)
            assert answers(listener, client)
        for refused in (RpcOptions(token="t"), RpcOptions(authority=files["other"], token="t")):
            with pytest.raises(errors.UnavailableError, match=r"does not answer after 0.4 s"):
                connect(listener.address, RpcOptions(**{**vars(refused), "connect_timeout": 0.4}))
        assert answers(listener, RpcOptions(authority=files["authority"], token="t"))


def test_the_name_in_a_certificate(files):
    server = RpcOptions(certificate=files["named"], key=files["key"])
    with Listener("127.0.0.1:0", echo, server) as listener:
        named = RpcOptions(authority=files["authority"], server_name="ps.cluster")
        assert answers(listener, named)
        other = RpcOptions(authority=files["authority"], server_name="w", connect_timeout=0.4)
        with pytest.raises(errors.UnavailableError, match="does not answer"):
            connect(listener.address, other)


def test_certificates_of_clients(files):
    both = RpcOptions(
        certificate=files["server"], key=files["key"], authority=files["authority"],
        verify_clients=True,
    )  # fmt: skip
    with Listener("127.0.0.1:0", echo, both) as listener:
        assert answers(listener, both)
        without = RpcOptions(authority=files["authority"], connect_timeout=0.4)
        with pytest.raises(errors.UnavailableError):
            connect(listener.address, without)
        assert answers(listener, both)


def test_a_certificate_that_is_not_there():
    with pytest.raises(errors.DataError, match="cannot read /nowhere"):
        Listener("127.0.0.1:0", echo, RpcOptions(certificate="/nowhere", key="/nowhere"))
    with pytest.raises(errors.DataError, match="cannot read /nowhere"):
        connect("127.0.0.1:1", RpcOptions(authority="/nowhere"))
