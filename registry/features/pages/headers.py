"""The headers of every page.

The policy allows nothing from other hosts, no script or style within a page, no frame around it, and forms that send to
this registry only.
"""

__all__ = ["HTML", "PAGE_HEADERS", "STATIC_HEADERS"]

HTML = "text/html; charset=utf-8"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALL = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without a referrer, forms would name no origin either
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
PAGE_HEADERS = {**_ALL, "Cache-Control": "no-store"}
STATIC_HEADERS = {**_ALL, "Cache-Control": "max-age=3600"}
