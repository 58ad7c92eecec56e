package main

import (
	"context"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestWhatWouldHaveNoEffectOnALoadIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ flag, want string }{
		"a rate of no load":         {"--load-rate=20", "--load-namespaces"},
		"runs of no load":           {"--load-runs=10", "--load-namespaces"},
		"sizes of no load":          {"--load-object-bytes=1", "--load-namespaces"},
		"workers of no load":        {"--load-workers=8", "--load-namespaces"},
		"the time of no load":       {"--load-time=1m", "--load-namespaces"},
		"to keep no load":           {"--load-keep", "--load-namespaces"},
		"a controller of no load":   {"--load-no-controller", "--load-namespaces"},
		"fewer than no namespaces":  {"--load-namespaces=-1", "reading /nowhere"},
		"nothing is said of a load": {"--seed=3", "reading /nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parser, err := kong.New(new(cli), kong.BindTo(t.Context(), (*context.Context)(nil)))
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := parser.Parse([]string{"simulate", "--kubeconfig=/nowhere", tt.flag})
			if err != nil {
				t.Fatal(err)
			}
			if err := parsed.Run(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
