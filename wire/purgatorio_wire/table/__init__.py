"""Decision tables of a broker's delayed operations. Each row is a clause B... with a sentence."""
