"""Operations on what lives beside variables: queues, barriers, accumulators, tables, readers."""
