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


def test_certificates_of_every_age(tmp_path):
    """Certificates that clients reject are named at the start and at each change; broken files are refused."""
    authority = Authority(tmp_path)
    (tmp_path / "strange").mkdir()
    stranger = Authority(tmp_path / "strange").issue("stranger")
    live = Pair(str(tmp_path / "live/cert.pem"), str(tmp_path / "live/key.pem"))

    def put(name, start, end, *, key=None):
        """Replace both files at once, as Kubernetes does: a node never finds a certificate with another one's key."""
        folder = tmp_path / name
        folder.mkdir()
        for source, file in zip(authority.issue(f"of-{name}", valid=(start * DAY, end * DAY)), live, strict=True):
            shutil.copy(source, folder / Path(file).name)
        if key is not None:
            (folder / "key.pem").write_text(key)
        (tmp_path / "new").symlink_to(folder)
        (tmp_path / "new").replace(tmp_path / "live")

    put("old", -2, -1)
    careless = authority.context()
    careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
    options = f"--tls-certfile={live.cert}", f"--tls-keyfile={live.key}", f"--tls-client-ca={authority.file}"
    with RegistryNode("memory:", JSON_LINES, *options, "--tls-client-auth=optional", tls=careless) as node:
        [line] = until_logged(node, "certificate_expired")
        assert (live.cert, "WARNING") == (line["file"], line["level"])
        put("early", 1, 90)
        until_logged(node, "tls_files_loaded", level="INFO")
        until_logged(node, "certificate_not_yet_valid", level="WARNING", file=live.cert)
        put("short", -1, 7)
        until_logged(node, "certificate_expires", level="WARNING", file=live.cert)
        put("broken", -1, 7, key="no key")
        [line] = until_logged(node, "tls_files_rejected", level="ERROR")
        assert "--tls-keyfile" in line["reason"]
        careless.load_cert_chain(*stranger)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            call(node, "GET", "/subjects")
        [line] = until_logged(node, "client_certificate_invalid", level="INFO")
        assert "self-signed certificate" in line["reason"] or "issuer certificate" in line["reason"]
