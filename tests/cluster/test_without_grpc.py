"""Without the extra `weft[cluster]` everything else works, and a server says what is missing."""

import subprocess
import sys

PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "grpc":
            raise ModuleNotFoundError("No module named 'grpc'", name="grpc")

sys.meta_path.insert(0, Missing())
import weft.tf1 as tf

with tf.Session() as session:
    assert session.run(tf.constant(1) + 1) == 2
for use in (tf.train.Server.create_local_server, lambda: tf.Session("grpc://localhost:1")):
    try:
        use()
    except ValueError as error:
        print(error)
print("rich" in sys.modules)
"""


def test_grpc_is_an_extra():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    missing = 'cluster: expected grpcio to be installed: pip install "weft[cluster]"'
    assert run.stdout.splitlines() == [missing, missing, "False"], run.stderr
