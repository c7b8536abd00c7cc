"""Operations inside layers: softmax, normalization, experts."""
