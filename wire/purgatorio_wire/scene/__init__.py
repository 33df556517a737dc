"""Scenes: sequences of requests to a broker. For each clause, some scene has an occasion (a case that could break it).

- Scenes: `fetch.txt` (text, made into scenes by `rounds`); `fetch`, `topic`, `transaction`, `group`, `static_member`,
  `consumer_group`, `share_group` (functions with the decorator of `spec`); `random_scene` (generated from a seed).
- The requests that a scene can send: `asker` (connections, pauses), `data_asker` (topics and records), `play`
  (groups: the `Play` that each scene gets), `member` (a member of a group). `broker`: what is known of the broker.
- Running them: `catalogue` (all scenes), `broker_probe` (the first requests), `plan` (order, repetition), `run`.
"""
