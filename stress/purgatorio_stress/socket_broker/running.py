"""`Running`: a broker that is up, for as long as a `with` lasts."""

import threading
from types import TracebackType
from uuid import uuid4

from purgatorio_stress.socket_broker.cluster import Broker, Cluster
from purgatorio_stress.socket_broker.node import Node
from purgatorio_stress.socket_broker.server import Server
from purgatorio_stress.socket_broker.settings import Settings

__all__ = ["Running"]


class Running:
    """Serves from the beginning, on threads of its own. OSError where the address cannot be had."""

    def __init__(self, settings: Settings) -> None:
        cluster = Cluster(f"purgatorio-{uuid4().hex[:8]}", [])
        self.node = Node(settings, cluster)
        try:
            self._server = Server(self.node)
        except BaseException:
            self.node.close()
            raise
        cluster.register(Broker(settings.node_id, settings.host, self._server.port))
        self._acceptor = threading.Thread(target=self._server.serve, name="acceptor", daemon=True)
        self._acceptor.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    def connections(self) -> int:
        """How many are open."""
        return self._server.connections()

    def __enter__(self) -> "Running":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self._acceptor.join()
        self.node.close()
