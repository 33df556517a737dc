"""Decision tables of a broker's delayed operations. Each row is one clause, such as B101, with one sentence."""
