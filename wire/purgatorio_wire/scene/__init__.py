"""Scenes: sequences of requests to a broker. Each clause has a scene with an occasion (a case that could break it)."""
