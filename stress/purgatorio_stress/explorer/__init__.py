"""The explorer: runs programs on the reference under many interleavings of their threads. To control the threads, it
replaces the locks and shared values of `purgatorio.sync`."""
