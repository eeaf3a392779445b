"""The neural ground: encoders, batches, the one training loop, prediction. Knows no method and no sparse tree."""
