"""What people touch: the command line. Knows terminals; computes nothing."""
