"""One file a method; none imports another."""
