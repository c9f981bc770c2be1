"""The upper bound of reads: a bare ASGI application that answers every request with one body, served like Strata."""

import socket
import sys

import uvicorn

__all__ = ["main"]


def main() -> None:
    """Serve the body from FILE on PORT until a signal stops the process."""
    port, file = sys.argv[1:]
    with open(file, "rb") as source:  # noqa: PTH123 - one read
        body = source.read()
    headers = [
        (b"content-type", b"application/vnd.schemaregistry.v1+json"),
        (b"content-length", str(len(body)).encode()),
    ]

    async def app(scope, _receive, send):  # type: ignore[no-untyped-def]
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    listener = socket.create_server(("127.0.0.1", int(port)))
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", server_header=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
