"""Real servers of more than one process: a Cluster, and a server with a replica and a Sentinel that watches them."""

import datetime
import ipaddress
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from redis import Redis

from tests.redis_server import RedisServer

FORM_SECONDS = 30
SLOTS = 16384
BUS_PORTS_END = 65_535 - 10_000  # nodes talk to each other on the port 10,000 above their own
SERVICE = "desk"


@contextmanager
def running(*servers: RedisServer) -> Iterator[None]:
    with ExitStack() as stack:
        for server in servers:
            server.start()
            stack.callback(server.stop)
        yield


def _until(check: Callable[..., bool], *args: object) -> None:
    gives_up_at = time.monotonic() + FORM_SECONDS
    while not check(*args):
        assert time.monotonic() < gives_up_at, "the servers do not find each other"
        time.sleep(0.02)


@contextmanager
def cluster(folder: Path, nodes: int = 3, **options: object) -> Iterator[list[RedisServer]]:
    """Run a Cluster of primaries, each with its part of the slots."""
    servers = []
    for number in range(nodes):
        place = folder / f"node{number}"
        place.mkdir()
        given = {"cluster_enabled": "yes", "cluster_node_timeout": 1000, **options}
        if "tls_cert_file" in options:
            given["tls_cluster"] = "yes"
        server = RedisServer(folder=place, **given)
        while max(server.port, server.tls_port) > BUS_PORTS_END:
            server = RedisServer(folder=place, **given)
        servers.append(server)
    with running(*servers), ExitStack() as stack:
        clients = [stack.enter_context(Redis(port=server.port)) for server in servers]
        for number, client in enumerate(clients):
            client.execute_command("CLUSTER ADDSLOTS", *range(number * SLOTS // nodes, (number + 1) * SLOTS // nodes))
            client.execute_command("CLUSTER MEET", "127.0.0.1", servers[0].tls_port or servers[0].port)
        _until(_is_formed, clients)
        yield servers


def _is_formed(clients: "list[Redis]") -> bool:
    infos = [client.execute_command("CLUSTER INFO") for client in clients]
    known = str(len(clients))
    return all(info["cluster_state"] == "ok" and info["cluster_known_nodes"] == known for info in infos)


def cluster_url(servers: list[RedisServer]) -> str:
    return "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in servers)


class Watched:
    """A server, its replica, and the Sentinel that watches them and answers a user with few `rights`."""

    def __init__(self, folder: Path, rights: list[str], **tls: object) -> None:
        secure = {**tls, "tls_replication": "yes"} if tls else {}
        quick: dict[str, object] = {"repl_diskless_sync": "yes", "repl_diskless_sync_delay": 0, **secure}
        self.first = RedisServer(folder=folder, dbfilename="first.rdb", **quick)
        watched_port = self.first.tls_port or self.first.port
        self.second = RedisServer(
            folder=folder, dbfilename="second.rdb", replicaof=f"127.0.0.1 {watched_port}", **quick
        )
        config = folder / "sentinel.conf"
        config.write_text(
            f"sentinel monitor {SERVICE} 127.0.0.1 {watched_port} 1\n"
            f"sentinel down-after-milliseconds {SERVICE} 500\n"
            f"sentinel failover-timeout {SERVICE} 3000\n"
            f"user watcher on >secret -@all {' '.join(rights)}\n"
        )
        self.sentinel = RedisServer(folder=folder, words=(str(config), "--sentinel"), **secure)
        query = "?sentinel_username=watcher&sentinel_password=secret"
        self.url = f"redis+sentinel://127.0.0.1:{self.sentinel.port}/{SERVICE}/0{query}"
        self.tls_url = f"rediss+sentinel://127.0.0.1:{self.sentinel.tls_port}/{SERVICE}/0{query}"

    @contextmanager
    def running(self) -> Iterator[None]:
        with running(self.first, self.second, self.sentinel), Redis(port=self.sentinel.port) as watching:
            _until(lambda: int(watching.execute_command("SENTINEL MASTER", SERVICE)["num-slaves"]) == 1)
            with Redis(port=self.second.port) as replica:
                _until(lambda: replica.info("replication")["master_link_status"] == "up")
            yield


def certificate(folder: Path) -> dict[str, object]:
    """Make a certificate for 127.0.0.1 that vouches for itself; return a server's options."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's Redis")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    files: dict[str, object] = {"tls_cert_file": cert_file, "tls_key_file": key_file, "tls_ca_cert_file": cert_file}
    return {**files, "tls_auth_clients": "no"}
