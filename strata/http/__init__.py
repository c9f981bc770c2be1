"""The HTTP client of all that calls a registry: `serdes`, `gitops`, exporters, standbys and the command line.

    client = Client(HttpSettings(urls=("https://a:8081", "https://b:8081"), token="…"), {"Accept": "application/json"})
    answer = client.send("GET", "/subjects")

One place decides which requests are repeated and when, how much of an answer is read, how credentials, tokens, proxies
and certificates are used, and when another address takes over. It knows no JSON and no error code of a registry, and
of its routes only how names and settings stand in a path: callers turn answers and failures into their own errors.

Calls between the nodes of one registry are apart (`registry/http/node_calls.py`): they are never repeated, another
thread can abort them, and they carry a signature instead of credentials.
"""
