package server

import (
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/xds/translate"
)

func TestTheVersionIsTheContents(t *testing.T) {
	t.Parallel()
	a, b, c := snapshot(t, time.Second), snapshot(t, time.Second), snapshot(t, 2*time.Second)
	if a.Version() != b.Version() {
		t.Errorf("equal resources have the versions %s and %s", a.Version(), b.Version())
	}
	if a.Version() == c.Version() {
		t.Errorf("different resources have one version, %s", a.Version())
	}
	fewer := resources(t, time.Second)
	fewer.Clusters = fewer.Clusters[:1]
	d, err := NewSnapshot(fewer)
	if err != nil {
		t.Fatal(err)
	}
	if d.Version() == a.Version() {
		t.Error("a cluster less has the same version")
	}
}

func TestASnapshotThatIsNotConsistentIsRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*translate.Resources){
		"a listener whose routes are missing": func(r *translate.Resources) { r.Routes = nil },
		"routes that no listener has":         func(r *translate.Resources) { r.Listeners = nil },
		"routes of another name":              func(r *translate.Resources) { r.Routes[0].Name = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := resources(t, time.Second)
			spoil(r)
			if _, err := NewSnapshot(r); err == nil || !strings.Contains(err.Error(), "making a snapshot") {
				t.Errorf("got %v", err)
			}
		})
	}
}
