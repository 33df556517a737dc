"""The stress harness: runs the explorer's scenarios on real threads, round after round. See docs/stress.md."""
