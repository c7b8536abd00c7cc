"""Update rules of optimizers: adam, rmsprop, sgd and others, each formula once."""
