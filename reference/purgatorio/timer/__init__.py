"""Timers: the contract in `interface`, the hierarchical wheel, its dumb twin, the hashed wheel, and a mock."""
