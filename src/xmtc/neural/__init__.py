"""Neural building blocks: encoders, batches, the training loop, prediction. Knows no method and no sparse tree."""
