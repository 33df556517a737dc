"""Scenes: sequences of requests to a broker. For each clause, some scene has an occasion (a case that could break it).

- Scenes: the file `fetch.txt`, which `rounds` reads; functions with the decorator of `spec` (in `fetch`, `topic`,
  `transaction`, `group`, `static_member`, `consumer_group`, `share_group`); `random_scene`, which generates programs
  from a seed. `request` has the requests of programs and of `fetch.txt`, one function each.
- The requests that a scene can send: `asker` (connections, pauses), `data_asker` (topics and records), `play` (groups:
  the `Play` that each scene gets), `member` (a member of a group). `broker`: the known facts about the broker.
- Running them: `catalogue` (all scenes), `broker_probe` (the first requests), `plan` (order, repetition), `run`.
"""
