"""`tf.train`: optimizers, learning rates, the global step."""

from weft.tf1.summary.proto import summary_iterator
from weft.tf1.train.checkpoint_reader import (
    CheckpointReader,
    NewCheckpointReader,
    list_variables,
    load_checkpoint,
    load_variable,
)  # fmt: skip
from weft.tf1.train.checkpoint_state import (
    CheckpointState,
    checkpoint_exists,
    get_checkpoint_state,
    latest_checkpoint,
)  # fmt: skip
from weft.tf1.train.coordinator import Coordinator
from weft.tf1.train.example import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)  # fmt: skip
from weft.tf1.train.hook.run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from weft.tf1.train.hook.saving import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    ProfilerHook,
    SummarySaverHook,
)
from weft.tf1.train.hook.step import GlobalStepWaiterHook, StepCounterHook, StopAtStepHook
from weft.tf1.train.hook.timer import SecondOrStepTimer
from weft.tf1.train.hook.value import (
    FeedFnHook,
    FinalOpsHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
)
from weft.tf1.train.input import (
    batch,
    shuffle_batch,
    slice_input_producer,
    string_input_producer,
)
from weft.tf1.train.learning_rate import (
    ExponentialMovingAverage,
    cosine_decay,
    create_global_step,
    exponential_decay,
    get_global_step,
    get_or_create_global_step,
    global_step,
    inverse_time_decay,
    natural_exp_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)  # fmt: skip
from weft.tf1.train.monitored.creator import (
    ChiefSessionCreator,
    SessionCreator,
    WorkerSessionCreator,
)
from weft.tf1.train.monitored.scaffold import Scaffold
from weft.tf1.train.monitored.session import MonitoredSession, SingularMonitoredSession
from weft.tf1.train.monitored.supervisor import Supervisor, basic_train_loop
from weft.tf1.train.monitored.training import MonitoredTrainingSession
from weft.tf1.train.optimizer import (
    AdagradOptimizer,
    AdamOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    Optimizer,
    RMSPropOptimizer,
)  # fmt: skip
from weft.tf1.train.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from weft.tf1.train.saver import Saver, SaverDef

__all__ = [
    "AdagradOptimizer", "AdamOptimizer", "BytesList", "CheckpointReader", "CheckpointSaverHook",
    "CheckpointSaverListener", "CheckpointState", "ChiefSessionCreator", "Coordinator", "Example",
    "ExponentialMovingAverage", "Feature", "FeatureList", "FeatureLists", "Features", "FeedFnHook",
    "FinalOpsHook", "FloatList", "GlobalStepWaiterHook", "GradientDescentOptimizer", "Int64List",
    "LoggingTensorHook", "MomentumOptimizer", "MonitoredSession", "MonitoredTrainingSession",
    "NanLossDuringTrainingError", "NanTensorHook", "NewCheckpointReader", "Optimizer",
    "ProfilerHook", "QueueRunner", "RMSPropOptimizer", "Saver", "SaverDef", "Scaffold",
    "SecondOrStepTimer", "SequenceExample", "SessionCreator", "SessionRunArgs", "SessionRunContext",
    "SessionRunHook", "SessionRunValues", "SingularMonitoredSession", "StepCounterHook",
    "StopAtStepHook", "SummarySaverHook", "Supervisor", "WorkerSessionCreator", "add_queue_runner",
    "basic_train_loop", "batch", "checkpoint_exists", "cosine_decay", "create_global_step",
    "exponential_decay", "get_checkpoint_state", "get_global_step", "get_or_create_global_step",
    "global_step", "inverse_time_decay", "latest_checkpoint", "list_variables", "load_checkpoint",
    "load_variable", "natural_exp_decay", "piecewise_constant", "piecewise_constant_decay",
    "polynomial_decay", "shuffle_batch", "slice_input_producer", "start_queue_runners",
    "string_input_producer", "summary_iterator",
]  # fmt: skip
