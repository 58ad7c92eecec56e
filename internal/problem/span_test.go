package problem_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"hangar.io/glidepath/internal/problem"
)

// recorded gives the span of a call that failed with e.
func recorded(t *testing.T, e *problem.Error) sdktrace.ReadOnlySpan {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	ctx, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test").Start(t.Context(), "call")
	e.Record(ctx)
	span.End()
	return spans.Ended()[0]
}

func TestTheMessageOfASpanIsBoundedAndText(t *testing.T) {
	for name, cause := range map[string]string{
		"a megabyte":                        strings.Repeat("x", 1<<20),
		"a megabyte of characters of three": strings.Repeat("\u20ac", 1<<20/3),
		"what is no text":                   "\xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			s := recorded(t, problem.New(problem.SourceFailed, "").WithCause(errors.New(cause)))
			for _, a := range s.Events()[0].Attributes {
				if v := a.Value.AsString(); len(v) > 1100 || !utf8.ValidString(v) {
					t.Errorf("%s has %d bytes, text: %v", a.Key, len(v), utf8.ValidString(v))
				}
			}
		})
	}
}

func TestOnlyA5xxMakesAFailedSpan(t *testing.T) {
	for rule, want := range map[*problem.Rule]codes.Code{&problem.SourceFailed: codes.Error, &problem.AuthzDenied: codes.Unset} {
		s := recorded(t, problem.New(*rule, ""))
		if s.Status().Code != want || len(s.Events()) != 1 || s.Events()[0].Name != "exception" {
			t.Errorf("%s: %v %v", rule.ID, s.Status(), s.Events())
		}
	}
}
