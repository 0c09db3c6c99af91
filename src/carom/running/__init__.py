"""A run on the host: the compiled loop, its chunks, batches, compiled programs."""
