"""Scenes: what is played against a broker so that each clause has an occasion."""
