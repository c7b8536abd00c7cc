"""A user's program with names of every front end; `check_typing.py` checks it in strict mode."""

from typing import Any, assert_type

import weft as wf
import weft.distributed as dist
import weft.horovod.torch as hvd
import weft.numpy as np
import weft.tf1 as tf
from weft import nn, optim
from weft.nn import functional as F
from weft.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(3, 2)

    def forward(self, x: wf.Tensor) -> Any:
        return F.relu(self.dense(x))


def eager() -> None:
    assert_type(wf.ones(2, 3), wf.Tensor)
    assert_type(wf.cumsum(wf.ones(3), 0), wf.Tensor)
    assert_type(wf.relu_(wf.ones(3)), wf.Tensor)
    assert_type(wf.fft.istft(wf.ones(3, 2), 4), wf.Tensor)
    wf.conv2d(wf.ones(1, 1, 3, 3), wf.ones(1, 1, 2, 2))
    wf.save(Net().state_dict(), "net.wf")
    print(wf.float32, wf.nn.Linear, wf.special.erf, wf.linalg.inv, wf.scipy.special.gammaln)
    print(wf.explain(wf.exp, wf.ones(2)), wf.func.vmap(wf.exp), wf.vmap, wf.metrics, wf.sparse)


def layers() -> None:
    assert_type(nn.GLU(dim=2).dim, int)
    assert_type(nn.CrossEntropyLoss(None, label_smoothing=0.1).reduction, str)
    print(nn.MaxPool2d(2, ceil_mode=True), nn.LSTM(3, 4), nn.LazyConv2d(3, kernel_size=2))
    print(nn.TripletMarginWithDistanceLoss(margin=2.0), nn.Embedding(3, 2, dtype=wf.float32))


def training() -> None:
    net = Net()
    optimizer = optim.Adam(net.parameters(), 1e-3, (0.9, 0.99), maximize=False)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2)
    for batch in DataLoader(wf.datasets.load_digits()[0], batch_size=4):
        optimizer.zero_grad()
        wf.autograd.backward(net(batch).sum())
        optimizer.step()
    schedule.step()
    print(wf.train.Trainer, wf.train.callbacks.Callback, wf.models.ResNet, wf.utils.checkpoint)


def graphs() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    y: tf.Tensor = tf.math.exp(tf.mul(x, 2.0))
    with tf.Session() as session:
        session.run([y, *tf.tuple([y])])
    assert_type(tf.reduce_sum(y, axis=[1], keepdims=True), tf.Tensor)
    print(tf.train.AdamOptimizer, tf.nn.relu, tf.summary.scalar, tf.linalg.det, tf.random.normal)
    print(tf.keras.layers.Dense, tf.keras.Model, tf.data.Dataset, tf.contrib.seq2seq.Decoder)


def arrays() -> None:
    assert_type(np.linspace(0, 1, 3), np.ndarray)
    print(np.linalg.inv, np.fft.fft, np.random.normal, np.exp)


def ranks() -> None:
    dist.init_process_group()
    dist.all_reduce(wf.ones(2), dist.ReduceOp.SUM)
    print(dist.fsdp.fully_shard, dist.tensor.DTensor, dist.checkpoint.save, hvd.allreduce)
