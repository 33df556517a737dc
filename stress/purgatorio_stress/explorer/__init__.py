"""The explorer: runs the code of the reference under many interleavings. To control the threads, the explorer replaces
the locks and shared values of `purgatorio.sync`."""
