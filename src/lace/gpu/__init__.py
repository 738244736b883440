"""What makes a CUDA GPU quick: the same numbers, by fewer and fuller calls. Nothing here is needed on a CPU."""
