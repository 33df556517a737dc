"""The stress harness: runs the explorer's scenarios on real threads, many rounds each. See docs/stress.md."""
