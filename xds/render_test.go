package xds

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/internal/devenv/devtest"
)

var update = flag.Bool("update", false, "rewrite the golden file of the rendered edge")

func renderOptions() RenderOptions {
	o := RenderOptions{EdgeOptions: options(), AdminSocket: "/run/glidepath/admin.sock"}
	o.Backends = ""
	return o
}

// What Envoy is told of the whole contract, for reviews to read. Envoy itself
// is asked about it below.
func TestTheRenderedEdgeIsTheGoldenFile(t *testing.T) {
	t.Parallel()
	wantGolden(t, renderOptions(), "edge.yaml")
}

func TestTheRenderedEdgeWithTLSIsTheGoldenFile(t *testing.T) {
	t.Parallel()
	opts := renderOptions()
	opts.TLSCertFile, opts.TLSKeyFile = "/etc/glidepath/tls/tls.crt", "/etc/glidepath/tls/tls.key"
	opts.OTLPEndpoint, opts.OTLPCAFile = "https://collector:4318", "/etc/glidepath/otlp/ca.crt"
	wantGolden(t, opts, "edge-tls.yaml")
}

func wantGolden(t *testing.T, opts RenderOptions, name string) {
	t.Helper()
	got, err := Render(opts)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("..", "envoy", "golden", name)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; run go test ./xds -update if that is meant (-want +got):\n%s", golden, diff)
	}
	again, err := Render(opts)
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("rendering twice gives two configurations (%v)", err)
	}
}

func TestEnvoyTakesWhatIsRendered(t *testing.T) {
	t.Parallel()
	binary := devtest.Tool(t, "envoy")
	policyFile := filepath.Join("..", "envoy", "policy", "example.yaml")
	for name, change := range map[string]func(*RenderOptions){
		"by default":                func(*RenderOptions) {},
		"with the planned":          func(o *RenderOptions) { o.ServePlanned = "10.0.0.9:1" },
		"with a collector":          func(o *RenderOptions) { o.OTLPEndpoint, o.TraceRatio = "http://collector:4318", 0.1 },
		"with a route for people":   func(o *RenderOptions) { o.PeopleListen, o.PeopleHosts = "0.0.0.0:8090", []string{"people.example"} },
		"with the example's policy": func(o *RenderOptions) { o.Policy = policyFile },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := renderOptions()
			change(&opts)
			config, err := Render(opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := Validate(t.Context(), config, binary); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("and says what is wrong with one that it does not take", func(t *testing.T) {
		t.Parallel()
		config, err := Render(renderOptions())
		if err != nil {
			t.Fatal(err)
		}
		config = bytes.ReplaceAll(config, []byte("%START_TIME%"), []byte("%NO_SUCH_THING%"))
		if err := Validate(t.Context(), config, binary); err == nil || !strings.Contains(err.Error(), "NO_SUCH_THING") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAnEnvoyThatIsNotThereIsSaidToBe(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Chdir(t.TempDir())
	if err := Validate(t.Context(), nil, ""); !errors.Is(err, ErrNoEnvoy) {
		t.Errorf("got %v", err)
	}
}

func TestABadPolicyIsNotRendered(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nnope: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := renderOptions()
	opts.Policy = file
	if _, err := Render(opts); err == nil || !strings.Contains(err.Error(), file+":2:1: unknown key") {
		t.Errorf("got %v", err)
	}
	opts.Policy = file + ".missing"
	if _, err := Render(opts); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
