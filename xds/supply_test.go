package xds

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/xds/server"
)

func TestStaleIsSaidAsLongAsTheFilesSaySomethingElse(t *testing.T) {
	t.Parallel()
	store, err := server.NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log, registry := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	srv := server.New(store, server.NewMetrics(registry), log)
	s := newSupplier(api.Operations(), options(), srv, registry, log)
	good := PolicyFile{Name: "policy.yaml", Data: []byte("version: 1\n")}
	bad := PolicyFile{Name: "policy.yaml", Data: []byte("version: none\n")}
	empty := PolicyFile{Name: "policy.yaml", Data: []byte{}}
	if err := s.first(t.Context(), good, nil); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name    string
		pol     PolicyFile
		readErr error
		want    string
	}{
		{"a file that cannot be read", PolicyFile{}, errors.New("gone"), "1"},
		{"the same file again", good, nil, "0"},
		{"a bad file", bad, nil, "1"},
		{"the bad file touched", bad, nil, "1"},
		{"one that cannot be read after a bad one", PolicyFile{}, errors.New("gone"), "1"},
		{"the good file", good, nil, "0"},
		{"a file that its writer truncated", empty, nil, "1"},
		{"the file once it is written", good, nil, "0"},
	} {
		s.next(t.Context(), step.pol, step.readErr)
		want := "# HELP glidepath_xds_stale 1 while the present configuration cannot be built or an Envoy refused it, so that an older one is served or none.\n" +
			"# TYPE glidepath_xds_stale gauge\nglidepath_xds_stale " + step.want + "\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "glidepath_xds_stale"); err != nil {
			t.Errorf("after %s: %v", step.name, err)
		}
	}
}
