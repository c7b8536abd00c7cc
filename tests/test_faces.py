"""What a face tells is in the front end that it names, once."""

import functools

import weft as wf
from weft import Tensor
from weft import numpy as wnp
from weft import tf1 as tf
from weft.distributed.tensor import DTensor
from weft.ops.declaration.face import FACES, Face
from weft.ops.special.hosted import HOSTED

ALL = {name: source.face for name, source in FACES.items()}
PLACES = {
    "torch": [wf, Tensor], "numpy": [wnp], "special": [wf.special], "scipy": [wf.scipy.special],
    "tf1": [tf],
}  # fmt: skip


def missing(own: str, face: Face) -> list[str]:
    """The names that a front end lacks."""
    told = [(place, n) for front in PLACES for place in PLACES[front] for n in face.names(front)]
    told += [(Tensor, word) for word in (face.torch or "").split() if word[-1] == "_"]
    told += [(tf, f"math.{n}") for n in face.names("tf1") if "." not in n]
    told += [(DTensor, own)] * face.dtensor
    told = [(place, name.removeprefix("tf.")) for place, name in told]
    return [name for place, name in told if not has(place, name)]


def has(place: object, name: str) -> bool:
    try:
        return callable(functools.reduce(getattr, name.split("."), place))
    except AttributeError:
        return False


def test_every_name_is_where_its_face_says():
    hosted = {name: known.face for name, known in HOSTED.items()}
    assert not {
        own: missing(own, face) for own, face in (ALL | hosted).items() if missing(own, face)
    }
    assert missing("exp", Face(torch="exp_ expo", tf1="Exp expo", numpy="exp")) == ["expo"] * 3 + [
        "math.expo"
    ]


def test_no_two_faces_tell_one_name():
    for front in PLACES:
        names = [name for face in ALL.values() for name in face.names(front)]
        assert len(names) == len(set(names)), front
