"""`GraphKeys`: the names of a graph's standard collections."""

from __future__ import annotations


class GraphKeys:
    """Names of collections."""

    GLOBAL_VARIABLES = "variables"
    VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    REGULARIZATION_LOSSES = "regularization_losses"
    LOSSES = "losses"
    SUMMARIES = "summaries"
    SUMMARY_OP = "summary_op"
    UPDATE_OPS = "update_ops"
    TRAIN_OP = "train_op"
    GLOBAL_STEP = "global_step"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    SAVERS = "savers"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
