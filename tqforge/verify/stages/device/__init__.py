"""Compare a whole model on a device with the CPU."""
