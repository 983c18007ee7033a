"""OpenTelemetry's traces, where an endpoint for them is set: spans of requests, turns, builds, model calls, tools and searches.

Spans carry ids, names of our own, counts and times; never what users, models or tools said. Without an endpoint there are none, and
nothing of OpenTelemetry is imported.
"""

import importlib
import importlib.util
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from time import perf_counter
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from django.conf import settings

from apps.core.log_ids import log_ids_now
from apps.core.metrics.base import Figure

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
SDK = "opentelemetry.sdk.trace"
EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
Value = str | int | float | bool | list[str]
Kind = Literal["INTERNAL", "SERVER", "CLIENT"]
_tracer: Any = None
_provider: Any = None


class Span(AbstractContextManager["Span"]):
    """One span; as a context manager those begun inside, in tasks and pool threads too, are its children.

    What is raised marks it as failed with the name of the error alone: its text may quote what somebody said.
    """

    def __init__(self, inner: Any = None) -> None:
        self._inner = inner
        self._token: object = None

    def set(self, name: str, value: Value | None) -> None:
        """Adds an attribute; None is left out."""
        if self._inner is not None and value is not None:
            self._inner.set_attribute(name, value)

    def name(self, name: str) -> None:
        """Names it anew, once it is known better what it is about."""
        if self._inner is not None:
            self._inner.update_name(name)

    def fail(self, kind: str) -> None:
        """Marks it as failed by an error of that name or code."""
        if self._inner is not None:
            from opentelemetry.trace import Status, StatusCode

            self._inner.set_attribute("error.type", kind)
            self._inner.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        """Ends one that `span_begin` began."""
        if self._inner is not None:
            self._inner.end()

    def __enter__(self) -> Self:
        if self._inner is not None:
            from opentelemetry import context, trace

            self._token = context.attach(trace.set_span_in_context(self._inner))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._inner is None:
            return
        from opentelemetry import context

        if kind is not None:
            self.fail(kind.__name__)
        context.detach(self._token)  # type: ignore[arg-type]
        self._inner.end()


NOTHING = nullcontext(Span())
"""A block's span where nobody collects them."""


def span(
    name: str,
    attributes: Mapping[str, Value | None] | None = None,
    *,
    kind: Kind = "INTERNAL",
    headers: Mapping[str, str] | None = None,
) -> AbstractContextManager[Span]:
    """A span to enter with `with`, with the ids that the log's lines have as `izzy.<name>`.

    `headers` are those of a request whose sender may say which trace it belongs to (`traceparent`).
    """
    if _tracer is None:
        return NOTHING
    return span_begin(name, attributes, kind=kind, headers=headers) or NOTHING


def span_begin(
    name: str,
    attributes: Mapping[str, Value | None] | None = None,
    *,
    kind: Kind = "INTERNAL",
    headers: Mapping[str, str] | None = None,
) -> Span | None:
    """A span that is no parent of others until it is entered, for generators: end it with `end`. None where nobody collects
    them."""
    if _tracer is None:
        return None
    from opentelemetry.trace import SpanKind

    parent = None
    if headers is not None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        parent = TraceContextTextMapPropagator().extract(headers)
    ids = {f"izzy.{key}": value for key, value in log_ids_now().items()}
    found = {key: value for key, value in (attributes or {}).items() if value is not None}
    return Span(
        _tracer.start_span(
            name,
            context=parent,
            kind=SpanKind[kind],
            attributes=ids | found,
            record_exception=False,
            set_status_on_exception=False,
        )
    )


def traced(name: str, seconds: Figure) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorates a synchronous function with a span of that name, and has its time observed by the figure."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            begun = perf_counter()
            try:
                with span(name):
                    return function(*args, **kwargs)
            finally:
                seconds.observe(perf_counter() - begun)

        return call

    return decorate


def traces_open(role: str) -> None:
    """Collects spans from now on where an endpoint is set, under the name of this process' role (`web`, `worker`)."""
    global _tracer, _provider
    if not settings.IZZY_OTEL_ENDPOINT or _tracer is not None or missing():
        return
    exporter = importlib.import_module(EXPORTER)
    sdk = importlib.import_module(SDK)
    export = importlib.import_module("opentelemetry.sdk.trace.export")
    resources = importlib.import_module("opentelemetry.sdk.resources")
    named = resources.Resource.create({"service.name": "izzy", "izzy.role": role})
    # What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say counts more.
    named = named.merge(resources.OTELResourceDetector().detect())
    # Not the global provider: libraries would write spans of their own into it, some with what was said.
    _provider = sdk.TracerProvider(resource=named)
    send = exporter.OTLPSpanExporter(endpoint=f"{settings.IZZY_OTEL_ENDPOINT}/v1/traces")
    _provider.add_span_processor(export.BatchSpanProcessor(send))
    _tracer = _provider.get_tracer("izzy")


def traces_close() -> None:
    """Sends what is collected and collects no more."""
    global _tracer, _provider
    provider, _tracer, _provider = _provider, None, None
    if provider is not None:
        provider.shutdown()


def missing() -> bool:
    """Whether the optional part that sends spans is not installed."""
    try:
        return any(importlib.util.find_spec(name) is None for name in (SDK, EXPORTER))
    except ModuleNotFoundError:
        return True
