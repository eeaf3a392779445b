"""One package per method; none imports another."""
