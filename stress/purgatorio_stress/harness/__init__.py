"""The threaded stress harness: the explorer's scenarios under real threads, round after round; see docs/stress.md."""
