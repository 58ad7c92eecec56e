package envoy_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/envoy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestBootstrapIsTheGoldenFile(t *testing.T) {
	t.Parallel()
	got, err := envoy.Bootstrap{XDSSocket: "/run/glidepath/xds.sock", AdminSocket: "/run/glidepath/admin.sock"}.Render()
	if err != nil {
		t.Fatal(err)
	}
	wantGolden(t, "bootstrap.yaml", got)
}

func remote() *envoy.RemoteXDS {
	return &envoy.RemoteXDS{
		Address: "xds.glidepath:18000", ServerName: "xds.glidepath", CAFile: "/etc/glidepath/xds/ca.crt",
		CertFile: "/etc/glidepath/xds/tls.crt", KeyFile: "/etc/glidepath/xds/tls.key", SecretsDir: "/etc/glidepath/envoy",
	}
}

func TestBootstrapOfARemoteXDSIsTheGoldenFile(t *testing.T) {
	t.Parallel()
	got, err := envoy.Bootstrap{RemoteXDS: remote(), AdminSocket: "/run/glidepath/admin.sock"}.Render()
	if err != nil {
		t.Fatal(err)
	}
	wantGolden(t, "golden/bootstrap-remote.yaml", got)
	secrets, err := remote().Secrets()
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range secrets {
		wantGolden(t, "golden/"+name, file)
	}
	addressed := remote()
	addressed.Address = "[2001:db8::1]:18000"
	if addressed.Discovery() != "STATIC" || addressed.Host() != "2001:db8::1" || addressed.Port() != 18000 {
		t.Errorf("an address is %s %s %d", addressed.Discovery(), addressed.Host(), addressed.Port())
	}
}

func wantGolden(t *testing.T, golden string, got []byte) {
	t.Helper()
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
		t.Errorf("it is not %s; run go test ./envoy -update (-want +got):\n%s", golden, diff)
	}
}

func TestBootstrapRefusesWhatEnvoyCouldNotStartWith(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   envoy.Bootstrap
		want []string
	}{
		"nothing given names both sockets": {
			want: []string{"the xds socket is not given", "the admin socket is not given"},
		},
		"a path longer than the kernel takes": {
			in:   envoy.Bootstrap{XDSSocket: "/" + strings.Repeat("x", 120), AdminSocket: "/a"},
			want: []string{"the xds socket has a path of 121 bytes"},
		},
		"a socket and a remote xds": {
			in:   envoy.Bootstrap{XDSSocket: "/a", AdminSocket: "/b", RemoteXDS: remote()},
			want: []string{"not both"},
		},
		"a remote xds of which nothing is said": {
			in: envoy.Bootstrap{AdminSocket: "/b", RemoteXDS: &envoy.RemoteXDS{KeyFile: "/k/key"}},
			want: []string{
				"is not host:port", "the name of the remote xds", "the authorities of xds", "the certificate for xds", "the folder of secrets", "in different folders",
			},
		},
		"one socket for both": {
			in:   envoy.Bootstrap{XDSSocket: "/a", AdminSocket: "/a"},
			want: []string{"cannot share a socket"},
		},
		"a negative limit": {
			in:   envoy.Bootstrap{XDSSocket: "/a", AdminSocket: "/b", MaxConnections: -1},
			want: []string{"a limit cannot be negative"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tt.in.Render()
			if err == nil {
				t.Fatal("rendered")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

// Beyond 95 % of its heap Envoy is busy giving memory back, and beyond 98 % it
// refuses every call.
func TestThereMayBeAsManyConnectionsAsTheHeapHoldsStreams(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   envoy.Bootstrap
		want string
	}{
		"nothing given":    {envoy.Bootstrap{}, "max_active_downstream_connections: 16602"},
		"a smaller heap":   {envoy.Bootstrap{MaxHeapBytes: 256 << 20}, "max_active_downstream_connections: 4150"},
		"a number is kept": {envoy.Bootstrap{MaxHeapBytes: 256 << 20, MaxConnections: 5000}, "max_active_downstream_connections: 5000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.in.XDSSocket, tt.in.AdminSocket = "/a", "/b"
			got, err := tt.in.Render()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(got), tt.want) {
				t.Errorf("%s is not in\n%s", tt.want, got)
			}
		})
	}
}

func TestBootstrapKeepsAPathOneScalar(t *testing.T) {
	t.Parallel()
	got, err := envoy.Bootstrap{XDSSocket: `/a"}, mode: 511 #`, AdminSocket: "/b"}.Render()
	if err != nil {
		t.Fatal(err)
	}
	if want := `path: "/a\"}, mode: 511 #"`; !strings.Contains(string(got), want) {
		t.Errorf("the path is not quoted as %s", want)
	}
}

func TestArgsFlushTheAuditLogAndShareNoMemory(t *testing.T) {
	t.Parallel()
	got := envoy.Args("/etc/envoy.yaml", 2)
	for _, pair := range [][2]string{
		{"--config-path", "/etc/envoy.yaml"}, {"--file-flush-interval-msec", "100"}, {"--concurrency", "2"},
	} {
		i := slices.Index(got, pair[0])
		if i < 0 || i+1 == len(got) || got[i+1] != pair[1] {
			t.Errorf("arguments %q lack %s %s", got, pair[0], pair[1])
		}
	}
	if !slices.Contains(got, "--disable-hot-restart") {
		t.Error("hot restart is on: two Envoys of a machine would share memory")
	}
	if slices.Contains(envoy.Args("x", 0), "--concurrency") {
		t.Error("a concurrency of 0 must leave the number of threads to Envoy")
	}
}
