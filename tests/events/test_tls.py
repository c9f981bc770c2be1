"""Events of TLS, caused on a real node whose certificates change while it runs."""

import shutil
import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from harness.certificates import Authority, Pair
from harness.log_lines import JSON_LINES, call, until_logged
from harness.registry import RegistryNode

DAY = timedelta(days=1)


class Files:
    """The TLS files of a node, which change together.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder):
        self._folder, self.authority = folder, Authority(folder)
        self.live = Pair(str(folder / "live/cert.pem"), str(folder / "live/key.pem"))

    def put(self, name, start, end, *, key=None):
        """Replace both files at once, as Kubernetes does: a node never finds a certificate with another one's key."""
        folder = self._folder / name
        folder.mkdir()
        issued = self.authority.issue(f"of-{name}", valid=(start * DAY, end * DAY))
        for source, file in zip(issued, self.live, strict=True):
            shutil.copy(source, folder / Path(file).name)
        if key is not None:
            (folder / "key.pem").write_text(key)
        (self._folder / "new").symlink_to(folder)
        (self._folder / "new").replace(self._folder / "live")

    def serving(self, *options):
        """Run a node with these files, whose clients accept any certificate."""
        careless = self.authority.context()
        careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
        files = f"--tls-certfile={self.live.cert}", f"--tls-keyfile={self.live.key}"
        return careless, RegistryNode("memory:", JSON_LINES, *files, *options, tls=careless)


@pytest.fixture
def files(tmp_path):
    """Return the files of a node."""
    return Files(tmp_path)


def test_certificates_that_clients_reject(files):
    """Certificates that clients reject are named at the start and at a change."""
    files.put("old", -2, -1)
    with files.serving()[1] as node:
        [line] = until_logged(node, "certificate_expired")
        assert (files.live.cert, "WARNING") == (line["file"], line["level"])
        files.put("early", 1, 90)
        until_logged(node, "tls_files_loaded", level="INFO")
        until_logged(node, "certificate_not_yet_valid", level="WARNING", file=files.live.cert)


def test_certificates_and_files_that_are_refused(files, tmp_path):
    """A certificate that ends soon is named, and so are broken files and a client certificate that is not trusted."""
    (tmp_path / "strange").mkdir()
    stranger = Authority(tmp_path / "strange").issue("stranger")
    files.put("short", -1, 7)
    careless, node = files.serving(f"--tls-client-ca={files.authority.file}", "--tls-client-auth=optional")
    with node:
        until_logged(node, "certificate_expires", level="WARNING", file=files.live.cert)
        files.put("broken", -1, 7, key="no key")
        [line] = until_logged(node, "tls_files_rejected", level="ERROR")
        assert "--tls-keyfile" in line["reason"]
        careless.load_cert_chain(*stranger)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            call(node, "GET", "/subjects")
        [line] = until_logged(node, "client_certificate_invalid", level="INFO")
        assert "self-signed certificate" in line["reason"] or "issuer certificate" in line["reason"]
