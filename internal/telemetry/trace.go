package telemetry

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes spans. A nil Tracer makes none, and costs its callers a comparison:
// no allocation, no goroutine. It is safe for many goroutines.
//
// A span says what was done, how long it took and whether it failed. It never says
// for whom: no address, no URL, no code of a link, and no text of an error, because
// where spans go is another company's database. The log has the text.
type Tracer struct {
	tracer trace.Tracer
	remote propagation.TextMapPropagator // nil = what callers send is not looked at
}

// Span is something that is being done; the zero Span is of no interest to anybody.
// The goroutine that made it ends it.
type Span struct{ span trace.Span }

// Start begins a span below the one of ctx, and returns the ctx of what is below it.
func (t *Tracer) Start(ctx context.Context, name string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, Span{span}
}

// StartFor begins a span of work for the spans of several callers, as a commit for all
// that wait for it. With one caller it is below that one; with more it stands alone and
// names them all. A nil ctx among them is nobody.
func (t *Tracer) StartFor(callers []context.Context, name string) Span {
	if t == nil {
		return Span{}
	}
	if len(callers) == 1 {
		_, span := t.tracer.Start(callers[0], name)
		return Span{span}
	}
	var links []trace.Link
	for _, ctx := range callers {
		if of := trace.SpanContextFromContext(ctx); of.IsValid() {
			links = append(links, trace.Link{SpanContext: of})
		}
	}
	_, span := t.tracer.Start(context.Background(), name, trace.WithLinks(links...))
	return Span{span}
}

// Int notes a number.
func (s Span) Int(key string, n int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(key, n))
	}
}

// End ends the span, failed with any error.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// startRequest begins the span of a request, below the one that its traceparent names
// (W3C Trace Context); a malformed one is as good as none.
func (t *Tracer) startRequest(r *http.Request) (*http.Request, Span) {
	if t == nil {
		return r, Span{}
	}
	ctx := r.Context()
	if t.remote != nil {
		ctx = t.remote.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	return r.WithContext(ctx), Span{span}
}

// endRequest ends it, under the names of OpenTelemetry's conventions for HTTP.
func (s Span) endRequest(method, route string, status int) {
	if s.span == nil {
		return
	}
	s.span.SetName(strings.TrimSpace(method + " " + route))
	s.span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route),
		attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}
