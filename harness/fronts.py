"""A front without a service behind it, for tests of what it does itself."""

from strata.registry.http.answer_cache import AnswerCache
from strata.registry.http.asgi import App
from strata.registry.http.cross_site import BrowserGuard
from strata.registry.http.error_boundary import ErrorBoundary
from strata.registry.http.front import Front
from strata.registry.http.inner_requests import InnerRequests
from strata.registry.http.reply import Layer
from strata.registry.http.request_checks import RequestChecks
from strata.registry.http.route_facts import RouteTable

__all__ = ["bare_front"]


def bare_front(within: Layer, app: App, *, access_log: bool = False) -> Front:
    """Return a front of a layer, with bodies of at most 10 bytes.

    Args:
        within: the layer that answers.
        app: the inner app, for what is not a request.
        access_log: whether to log every request.
    """
    routes, guard = RouteTable(()), BrowserGuard(None, ())
    layers = ErrorBoundary(RequestChecks(within, routes, guard, 10).answer, access_log=access_log)
    inner = InnerRequests(within, routes, max_body=10)
    return Front(app, layers, AnswerCache(lambda: 0, 1), routes, guard, inner=inner, uses_cache=not access_log)
