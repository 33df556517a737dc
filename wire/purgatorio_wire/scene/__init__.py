"""Scenes: the requests that are sent to a broker so that each clause has an occasion."""
