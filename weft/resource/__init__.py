"""Queues, barriers, accumulators, tables and readers: what a step may wait for."""

# Importing a module declares the kinds of resources that it makes.
from weft.resource import accumulator as accumulator
from weft.resource import barrier as barrier
from weft.resource import epoch as epoch
from weft.resource import ordered_queue as ordered_queue
from weft.resource import queue as queue
from weft.resource import staging as staging
from weft.resource import table as table
