"""Nodes on fresh topics of the session's broker, and raw clients to inspect and change the topics.

A broker acknowledges the creation, the deletion and the settings of a topic before its own answers show them. So each
change here waits until they do.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from faults.proxy import Proxy
from harness.certificates import Authority
from harness.kafka import KafkaBroker
from harness.kafka_relay import KafkaRelay
from harness.waiting import until
from strata.storage.kafka.log import KafkaLog, Timeouts

USER, SECRET = "ada", "0pen,=sesame"
"""Who may log in at the broker that tests may kill."""

_POLL_S = 60.0
_PATIENT = Timeouts(start=60.0, take_pen=60.0, read=60.0, write=60.0)  # for brokers on machines that pause


class Topic:
    """One topic on a broker: opens nodes on it, writes to it without the pen, and reads uncommitted records."""

    def __init__(self, broker: KafkaBroker, stack: ExitStack, name: str | None = None) -> None:
        self.broker, self.bootstrap = broker, broker.bootstrap
        self.name = name or f"schemas-{uuid.uuid4().hex[:8]}"
        self._stack = stack
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})

    def node(self, url: str | None = None, **options: object) -> KafkaLog:
        """Open one more node; its URL is the one that other nodes learn. It has much time, unless options say less."""
        chosen = {"timeouts": _PATIENT, **options}
        log = KafkaLog(self.bootstrap, self.name, advertised_url=url, **chosen)  # type: ignore[arg-type]
        return self._stack.enter_context(closing(log))

    def create(self, partitions: int = 1, **config: str) -> None:
        """Create the topic with some settings; wait while one of the same name is being deleted."""
        settings = {"cleanup.policy": "compact"} | {name.replace("_", "."): value for name, value in config.items()}
        new = NewTopic(self.name, num_partitions=partitions, replication_factor=1, config=settings)
        deadline = time.monotonic() + _POLL_S
        while (problem := self.admin.create_topics([new])[self.name].exception(_POLL_S)) is not None:
            assert isinstance(problem, KafkaException)
            if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS or time.monotonic() > deadline:
                raise problem
            time.sleep(0.05)
        until(self._is_led)

    def delete(self) -> None:
        """Delete the topic."""
        self.admin.delete_topics([self.name])[self.name].result(_POLL_S)
        until(lambda: self.name not in self.admin.list_topics(timeout=_POLL_S).topics)

    def config(self) -> dict[str, str]:
        """Return the settings of the topic."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.name)
        found = self.admin.describe_configs([resource])[resource].result(_POLL_S)
        return {name: entry.value for name, entry in found.items()}

    def alter(self, name: str, value: str) -> None:
        """Change one setting of the topic. A moment passes until the topic's log follows it."""
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.name, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(_POLL_S)
        until(lambda: self.config()[name] == value)

    def delete_records_before(self, offset: int) -> None:
        """Move the topic's start; a broker allows this only for a topic that is not compacted."""
        self.alter("cleanup.policy", "delete")
        partition = TopicPartition(self.name, 0, offset)
        deadline = time.monotonic() + _POLL_S
        while (problem := self.admin.delete_records([partition])[partition].exception(_POLL_S)) is not None:
            assert isinstance(problem, KafkaException)
            # The broker shows a setting a moment before the topic's log follows it.
            if problem.args[0].code() != KafkaError.POLICY_VIOLATION or time.monotonic() > deadline:
                raise problem
            time.sleep(0.05)
        self.alter("cleanup.policy", "compact")

    def write_plainly(self, key: bytes | None, value: bytes | None, **headers: bytes) -> None:
        """Write a record as another product would: no transaction, no pen."""
        self.write_all_plainly([(key, value)], **headers)

    def write_all_plainly(self, records: Sequence[tuple[bytes | None, bytes | None]], **headers: bytes) -> None:
        """Write records, as keys and values, one after the other."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all", "max.in.flight": 1})
        named = {name.replace("_", "-"): content for name, content in headers.items()}
        outcomes: list[KafkaError | None] = []
        for key, value in records:
            producer.produce(
                self.name, value, key, 0, headers=named, on_delivery=lambda error, _: outcomes.append(error)
            )
        producer.flush(_POLL_S)
        assert outcomes == [None] * len(records)

    def keys_in_the_topic(self) -> list[bytes | None]:
        """Return every key in the topic, those of uncommitted records included."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_uncommitted",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        with closing(consumer):
            consumer.assign([TopicPartition(self.name, 0, 0)])
            keys = []
            while (message := consumer.poll(_POLL_S)) is not None:
                if (problem := message.error()) is None:
                    keys.append(message.key())
                elif problem.code() == KafkaError._PARTITION_EOF:
                    return keys
        raise AssertionError(f"the end of {self.name} was not reached")

    def _is_led(self) -> bool:
        """Return whether the broker shows the topic and its leaders."""
        try:
            found = self.admin.describe_topics(TopicCollection([self.name]))[self.name].result(_POLL_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return False
        return all(partition.leader for partition in found.partitions)


@pytest.fixture(scope="session")
def relay() -> Iterator[KafkaRelay]:
    """Yield the relay to the broker that tests may kill."""
    with KafkaRelay() as relay:
        yield relay


@pytest.fixture(scope="session")
def path() -> Iterator[Proxy]:
    """Yield the proxy of a path to the broker that tests may kill."""
    proxy = Proxy()
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the CA of that broker and its clients."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="session")
def own_broker(relay: KafkaRelay, path: Proxy, authority: Authority) -> Iterator[KafkaBroker]:
    """Yield a broker that tests may kill, if they start it again.

    Clients of its listeners RELAY and PATH reach it through the relay and the proxy. Those of MUTUAL need a certificate
    of the CA, those of LOGIN and ENCRYPTED log in.
    """
    # After a restart the controller accepts no broker before the old session has ended.
    config = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "250"}
    listeners = {"MUTUAL": "SSL", "LOGIN": "SASL_PLAINTEXT", "ENCRYPTED": "SASL_SSL"}
    users = [f"--add-scram=SCRAM-SHA-{bits}=[name={USER},password=plain-{bits}]" for bits in (256, 512)]
    with KafkaBroker(
        config=config | _security(authority),
        proxied={"RELAY": [relay.port], "PATH": [path.port]},
        secured=listeners,
        formatting=users,
    ) as broker:
        relay.lead_to(broker.listener_port("RELAY", 0))
        path.lead_to(broker.listener_port("PATH", 0))
        yield broker


def _security(authority: Authority) -> dict[str, str]:
    """Return the settings of a broker with TLS and logins."""
    pair, modules = authority.issue("broker"), "org.apache.kafka.common.security"
    store = Path(pair.key).with_name("broker-store.pem")
    store.write_text(Path(pair.key).read_text() + Path(pair.cert).read_text())
    config = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
    config |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority.file}
    config |= {"listener.name.mutual.ssl.client.auth": "required"}
    for name in ("login", "encrypted"):
        logins = f"listener.name.{name}"
        config |= {f"{logins}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"}
        config[f"{logins}.plain.sasl.jaas.config"] = f'{modules}.plain.PlainLoginModule required user_ada="{SECRET}";'
        for scram in ("scram-sha-256", "scram-sha-512"):
            config[f"{logins}.{scram}.sasl.jaas.config"] = f"{modules}.scram.ScramLoginModule required;"
        config[f"{logins}.oauthbearer.sasl.jaas.config"] = (
            f'{modules}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        )
    return config


@pytest.fixture
def topic(kafka_broker: KafkaBroker) -> Iterator[Topic]:
    """Yield an unused topic name on the session's broker."""
    with ExitStack() as stack:
        yield Topic(kafka_broker, stack)


@pytest.fixture
def topic_on() -> Iterator[Callable[[KafkaBroker], Topic]]:
    """Yield a function that makes topics on a test's own broker."""
    with ExitStack() as stack:
        yield lambda broker: Topic(broker, stack)
