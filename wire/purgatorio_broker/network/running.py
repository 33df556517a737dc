"""`Running`: a broker that runs during a `with` block."""

import threading
from uuid import uuid4

from purgatorio_broker.network.cluster import Cluster, EndPoint
from purgatorio_broker.network.follower import Follower
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.server import Server
from purgatorio_broker.network.settings import Settings


class Running:
    """A broker that serves from its creation on, with its own threads. `follow`: the host and port of the leading
    broker.

    Raises OSError if the address is not available, or the leader cannot be reached.
    """

    def __init__(self, settings: Settings, follow: tuple[str, int] | None = None) -> None:
        cluster = Cluster(f"purgatorio-{uuid4().hex[:8]}", [])
        self.node = Node(settings, cluster, leads=follow is None)
        try:
            self._server = Server(self.node)
        except BaseException:
            self.node.close()
            raise
        own = EndPoint(settings.node_id, settings.host, self._server.port)
        cluster.register(own)
        self._acceptor = threading.Thread(target=self._server.serve, name="acceptor", daemon=True)
        self._acceptor.start()
        self._follower: Follower | None = None
        if follow is not None:
            try:
                self._follower = Follower(self.node, own, *follow)
            except BaseException:
                self.close()
                raise

    @property
    def port(self) -> int:
        return self._server.port

    def connections(self) -> int:
        return self._server.connections()

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()
        self._server.close()
        self._acceptor.join()
        self.node.close()
