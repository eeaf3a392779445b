"""One package per method; no method imports another."""
