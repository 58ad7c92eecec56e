package life_test

import (
	"strings"
	"testing"

	"hangar.io/glidepath/internal/simulator/life"
)

func TestChildName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("p", 60)
	for name, tt := range map[string]struct{ parent, suffix, want string }{
		"fits":                      {"test-x7k2p", "-unit", "test-x7k2p-unit"},
		"fits exactly":              {strings.Repeat("p", 58), "-unit", strings.Repeat("p", 58) + "-unit"},
		"parent is cut":             {long, "-unit", strings.Repeat("p", 26) + "51076b2116168bdcb39555728ba31f04" + "-unit"},
		"suffix as long as the cut": {long, "-" + strings.Repeat("t", 29), "p" + "51076b2116168bdcb39555728ba31f04" + "-" + strings.Repeat("t", 29)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := life.ChildName(tt.parent, tt.suffix)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for _, suffix := range []string{"-" + strings.Repeat("t", 31), "-" + strings.Repeat("t", 70)} {
		for _, parent := range []string{"a", long} {
			got := life.ChildName(parent, suffix)
			if len(got) > 63 || strings.HasSuffix(got, "-") || got == life.ChildName(parent, suffix+"x") {
				t.Errorf("%q and %q give %q", parent, suffix, got)
			}
		}
	}
}
