"""Decision tables of a broker's delayed operations. Each case of a table is one clause, such as B101, with one
sentence."""
