"""`tf.queue`: queues in the graph."""

from weft.tf1.data_flow.queue import FIFOQueue as FIFOQueue
from weft.tf1.data_flow.queue import PaddingFIFOQueue as PaddingFIFOQueue
from weft.tf1.data_flow.queue import PriorityQueue as PriorityQueue
from weft.tf1.data_flow.queue import RandomShuffleQueue as RandomShuffleQueue
from weft.tf1.data_flow.queue_base import QueueBase as QueueBase

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]
