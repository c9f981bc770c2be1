"""HashiCorp Vault's own transit engine on loopback; `python -m harness.transit` builds it into the cache folder.

    with real_transit() as (url, token):
        HcVault({"token.id": token}, {}).wrap(f"{url}/transit/keys/k", material)

The build takes long (641 packages of Go), so tests that need the engine are skipped until it was built; `make test-all`
builds it once where there is Go. Vault's licence (BUSL) allows it for tests; nothing of it is shipped.
"""

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.jars import cache_folder
from harness.processes import start_tied, stop_process
from harness.waiting import until

__all__ = ["PROGRAM", "real_transit"]

_VAULT, _SDK = "v1.21.4", "v0.24.0"  # no older sdk compiles with the engine of this version
_SOURCE = Path(__file__).with_name("go") / "transit.go"
_BUILD_TIMEOUT_S = 3000
_MODULE = f"""module transit

go 1.25

require (
	github.com/hashicorp/vault {_VAULT}
	github.com/hashicorp/vault/sdk {_SDK}
)
"""

PROGRAM = cache_folder().parent / "transit" / f"transit-{_VAULT}"
"""The built engine; it may not be there."""


@contextmanager
def real_transit() -> Iterator[tuple[str, str]]:
    """Yield the URL of a transit engine at the mount `transit`, and its token, until the block ends.

    Raises:
        RuntimeError: It does not start.
    """
    token = secrets.token_hex(8)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        process = start_tied([str(PROGRAM), "127.0.0.1:0", token], log=log)
        try:
            until(lambda: log.read_bytes().endswith(b"\n") or process.poll() is not None)
            if process.poll() is not None:
                raise RuntimeError(f"the transit engine did not start:\n{log.read_text()}")
            yield f"http://{log.read_text().splitlines()[0]}", token
        finally:
            stop_process(process)


def _build(program: Path) -> None:
    if program.exists():
        return
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        shutil.copy(_SOURCE, scratch)
        (Path(scratch) / "go.mod").write_text(_MODULE)
        made = Path(scratch) / "made"
        done = subprocess.run(
            ["go", "build", "-mod=mod", "-p", "1", "-o", str(made), "."],
            cwd=scratch,
            env={**os.environ, "GOFLAGS": ""},
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise RuntimeError(f"the transit engine cannot be built:\n{done.stderr[-2000:]}")
        made.rename(program)


if __name__ == "__main__":
    _build(PROGRAM)
