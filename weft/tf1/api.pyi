"""Made by `python -m tools.package_stubs`."""

from weft.tf1 import app as app
from weft.tf1 import bitwise as bitwise
from weft.tf1 import compat as compat
from weft.tf1 import errors as errors
from weft.tf1 import flags as flags
from weft.tf1 import gfile as gfile
from weft.tf1 import initializers as initializers
from weft.tf1 import linalg as linalg
from weft.tf1 import logging as logging
from weft.tf1 import losses as losses
from weft.tf1 import math as math
from weft.tf1 import metrics as metrics
from weft.tf1 import nn as nn
from weft.tf1 import random as random
from weft.tf1 import strings as strings
from weft.tf1.control.branch import *
from weft.tf1.control.check import *
from weft.tf1.control.dependency import *
from weft.tf1.control.dependency import tuple_ as _tuple
tuple = _tuple
from weft.tf1.control.functional_loop import *
from weft.tf1.control.gradient import *
from weft.tf1.control.loop import while_loop as while_loop
from weft.tf1.control.py_func import *
from weft.tf1.control.tensor_array import TensorArray as TensorArray
from weft.tf1.control.user_op import *
from weft.tf1.creation import *
from weft.tf1.elementwise.arithmetic import *
from weft.tf1.elementwise.clip import *
from weft.tf1.errors import OpError as OpError
from weft.tf1.framework.behavior import *
from weft.tf1.framework.collection import GraphKeys as GraphKeys
from weft.tf1.framework.convert import *
from weft.tf1.framework.device_spec import *
from weft.tf1.framework.dtypes import *
from weft.tf1.framework.dtypes import bool_ as _bool
bool = _bool
from weft.tf1.framework.default_graph import *
from weft.tf1.framework.graph import *
from weft.tf1.framework.indexed_slices import *
from weft.tf1.framework.sparse_tensor import *
from weft.tf1.framework.tensor import *
from weft.tf1.framework.tensor_shape import *
from weft.tf1.framework.tensor_spec import *
from weft.tf1.indexing.data_dependent import *
from weft.tf1.indexing.order import *
from weft.tf1.indexing.segment_reduction import *
from weft.tf1.indexing.slicing import *
from weft.tf1.linalg.contraction import *
from weft.tf1.linalg.diagonal import *
from weft.tf1.linalg.factorization import *
from weft.tf1.nn.rnn import reverse_sequence as reverse_sequence
from weft.tf1.random.distribution import *
from weft.tf1.reduction import *
from weft.tf1.session.options import *
from weft.tf1.shaping.arrangement import *
from weft.tf1.strings.bucket import *
from weft.tf1.strings.number import *
from weft.tf1.strings.text import *
from weft.tf1.variable.counting import *
from weft.tf1.variable.initializer import *
from weft.tf1.variable.partitioned import *
from weft.tf1.variable.partitioner import *
from weft.tf1.variable.assignment import *
from weft.tf1.variable.variable import *
from weft.tf1.variable.variable_list import *
from weft.tf1.variable.variable_scope import *
from weft.tf1.version import VERSION as VERSION
from weft.formats.example_spec import FixedLenFeature as FixedLenFeature
from weft.formats.example_spec import FixedLenSequenceFeature as FixedLenSequenceFeature
from weft.formats.example_spec import VarLenFeature as VarLenFeature
from weft.tf1 import config as config
from weft.tf1 import contrib as contrib
from weft.tf1 import data as data
from weft.tf1 import distribute as distribute
from weft.tf1 import distributions as distributions
from weft.tf1 import estimator as estimator
from weft.tf1 import feature_column as feature_column
from weft.tf1 import graph_util as graph_util
from weft.tf1 import image as image
from weft.tf1 import keras as keras
from weft.tf1 import layers as layers
from weft.tf1 import lookup as lookup
from weft.tf1 import python_io as python_io
from weft.tf1 import queue as queue
from weft.tf1 import saved_model as saved_model
from weft.tf1 import signal as signal
from weft.tf1 import sparse as sparse
from weft.tf1 import spectral as spectral
from weft.tf1 import summary as summary
from weft.tf1 import test as test
from weft.tf1 import train as train
from weft.tf1.control.tape import GradientTape as GradientTape
from weft.tf1.control.tape import custom_gradient as custom_gradient
from weft.tf1.control.tape import make_template as make_template
from weft.tf1.data.decode import decode_csv as decode_csv
from weft.tf1.data.decode import decode_image as decode_image
from weft.tf1.data.decode import decode_jpeg as decode_jpeg
from weft.tf1.data.decode import decode_png as decode_png
from weft.tf1.data.decode import decode_raw as decode_raw
from weft.tf1.data.decode import parse_example as parse_example
from weft.tf1.data.decode import parse_single_example as parse_single_example
from weft.tf1.data.decode import read_file as read_file
from weft.tf1.data.reader import FixedLengthRecordReader as FixedLengthRecordReader
from weft.tf1.data.reader import IdentityReader as IdentityReader
from weft.tf1.data.reader import ReaderBase as ReaderBase
from weft.tf1.data.reader import TFRecordReader as TFRecordReader
from weft.tf1.data.reader import TextLineReader as TextLineReader
from weft.tf1.data.reader import WholeFileReader as WholeFileReader
from weft.tf1.data_flow.accumulator import ConditionalAccumulator as ConditionalAccumulator
from weft.tf1.data_flow.accumulator import ConditionalAccumulatorBase as ConditionalAccumulatorBase
from weft.tf1.data_flow.accumulator import SparseConditionalAccumulator as SparseConditionalAccumulator
from weft.tf1.data_flow.barrier import Barrier as Barrier
from weft.tf1.data_flow.queue import FIFOQueue as FIFOQueue
from weft.tf1.data_flow.queue import PaddingFIFOQueue as PaddingFIFOQueue
from weft.tf1.data_flow.queue import PriorityQueue as PriorityQueue
from weft.tf1.data_flow.queue import RandomShuffleQueue as RandomShuffleQueue
from weft.tf1.data_flow.queue_base import QueueBase as QueueBase
from weft.tf1.data_flow.table import initialize_all_tables as initialize_all_tables
from weft.tf1.data_flow.table import tables_initializer as tables_initializer
from weft.tf1.eager.forms import print as print
from weft.tf1.eager.function import function as function
from weft.tf1.eager.module import Module as Module
from weft.tf1.eager.mode import enable_eager_execution as enable_eager_execution
from weft.tf1.eager.mode import enable_v2_behavior as enable_v2_behavior
from weft.tf1.eager.mode import executing_eagerly as executing_eagerly
from weft.tf1.framework import nest as nest
from weft.tf1.framework.graph_def import GraphDef as GraphDef
from weft.tf1.framework.importer import import_graph_def as import_graph_def
from weft.tf1.framework.node_def import NodeDef as NodeDef
from weft.tf1.image import random_crop as random_crop
from weft.tf1.session.base import get_default_session as get_default_session
from weft.tf1.session.session import InteractiveSession as InteractiveSession
from weft.tf1.session.session import Session as Session
from weft.tf1.session.tracing import RunMetadata as RunMetadata
from weft.tf1.session.tracing import RunOptions as RunOptions
from weft.tf1.signal import fft as fft
from weft.tf1.signal import fft2d as fft2d
from weft.tf1.signal import fft3d as fft3d
from weft.tf1.signal import ifft as ifft
from weft.tf1.signal import ifft2d as ifft2d
from weft.tf1.signal import ifft3d as ifft3d
from weft.tf1.sparse import sparse_add as sparse_add
from weft.tf1.sparse import sparse_concat as sparse_concat
from weft.tf1.sparse import sparse_reduce_sum as sparse_reduce_sum
from weft.tf1.sparse import sparse_reorder as sparse_reorder
from weft.tf1.sparse import sparse_reshape as sparse_reshape
from weft.tf1.sparse import sparse_retain as sparse_retain
from weft.tf1.sparse import sparse_slice as sparse_slice
from weft.tf1.sparse import sparse_softmax as sparse_softmax
from weft.tf1.sparse import sparse_tensor_dense_matmul as sparse_tensor_dense_matmul
from weft.tf1.sparse import sparse_tensor_to_dense as sparse_tensor_to_dense
from weft.tf1.sparse import sparse_to_dense as sparse_to_dense
from weft.tf1.sparse import sparse_to_indicator as sparse_to_indicator
from weft.tf1.sparse import sparse_transpose as sparse_transpose
from weft.tf1.summary.proto import Event as Event
from weft.tf1.summary.proto import Summary as Summary
from weft.tf1.train.meta_graph_def import MetaGraphDef as MetaGraphDef
mul = multiply
sub = subtract
neg = negative
pack = stack
unpack = unstack
