"""`weft bench` of a small network on several ranks, in a job that runs already."""

import sys

import weft as wf
from weft import nn
from weft.cli import main
from weft.cli.workload import WORKLOADS, Workload


def make():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(1), nn.Linear(288, 10))


def images(batch):
    return (wf.randn(batch, 3, 8, 8),), wf.randint(0, 10, (batch,))


big = WORKLOADS["resnet50"]
WORKLOADS["tiny"] = Workload(make, 4, "images/s", 1, images, big.loss, big.optimize)
sys.exit(main.main(["bench", "tiny", *sys.argv[1:]]))
