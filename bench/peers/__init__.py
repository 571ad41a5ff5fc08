"""The tools that are compared with each other, in the order of the result table.

The order is Outlive, shell, C programs, servers, queues.
"""

from peers.huey_peer import HueyApi, HueyCold
from peers.nq import Nq
from peers.outlive_peer import OutliveCli, OutliveSdk
from peers.pm2 import Pm2
from peers.protocol import Peer
from peers.rq_peer import RqApi, RqCold
from peers.setsid import Setsid
from peers.supervisor import Supervisor
from peers.tmux import Tmux
from peers.tsp import Tsp

PEERS: tuple[type[Peer], ...] = (
    OutliveCli,
    OutliveSdk,
    Setsid,
    Tsp,
    Nq,
    Tmux,
    Supervisor,
    Pm2,
    HueyCold,
    HueyApi,
    RqCold,
    RqApi,
)

NOT_INSTALLABLE = {
    "pueue": "no package in Debian 12 or on PyPI; npm's package of that name (0.0.0) contains no program",
}
