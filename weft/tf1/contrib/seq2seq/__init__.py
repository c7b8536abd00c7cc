"""`tf.contrib.seq2seq`: sequence decoders with attention and beam search."""

from weft.tf1.contrib.seq2seq.attention import (
    AttentionMechanism,
    BahdanauAttention,
    LuongAttention,
    hardmax,
)
from weft.tf1.contrib.seq2seq.attention_wrapper import AttentionWrapper, AttentionWrapperState
from weft.tf1.contrib.seq2seq.basic_decoder import BasicDecoder, BasicDecoderOutput
from weft.tf1.contrib.seq2seq.beam_search_decoder import (
    BeamSearchDecoder,
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
)
from weft.tf1.contrib.seq2seq.decoder import Decoder, dynamic_decode
from weft.tf1.contrib.seq2seq.gather_tree import (
    gather_tree,
    gather_tree_from_array,
    tile_batch,
)
from weft.tf1.contrib.seq2seq.helper import (
    CustomHelper,
    GreedyEmbeddingHelper,
    Helper,
    InferenceHelper,
    SampleEmbeddingHelper,
    TrainingHelper,
)
from weft.tf1.contrib.seq2seq.loss import sequence_loss
from weft.tf1.contrib.seq2seq.monotonic_attention import (
    BahdanauMonotonicAttention,
    LuongMonotonicAttention,
    monotonic_attention,
    safe_cumprod,
)
from weft.tf1.contrib.seq2seq.scheduled_helper import (
    ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper,
)

__all__ = [
    "AttentionMechanism", "AttentionWrapper", "AttentionWrapperState", "BahdanauAttention",
    "BahdanauMonotonicAttention", "BasicDecoder", "BasicDecoderOutput", "BeamSearchDecoder",
    "BeamSearchDecoderOutput", "BeamSearchDecoderState", "CustomHelper", "Decoder",
    "FinalBeamSearchDecoderOutput", "GreedyEmbeddingHelper", "Helper", "InferenceHelper",
    "LuongAttention", "LuongMonotonicAttention", "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper", "TrainingHelper",
    "dynamic_decode", "gather_tree", "gather_tree_from_array", "hardmax", "monotonic_attention",
    "safe_cumprod", "sequence_loss", "tile_batch",
]  # fmt: skip
