package e2e_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// listening gives what a process listens on: host:port pairs and paths of Unix
// sockets.
func listening(t *testing.T, pid int) []string {
	t.Helper()
	mine := inodes(t, pid)
	var out []string
	for _, family := range []string{"tcp", "tcp6"} {
		for _, f := range table(t, pid, family) {
			const listen = "0A"
			if len(f) > 9 && f[3] == listen && mine[f[9]] {
				_, port, _ := strings.Cut(f[1], ":")
				n, err := strconv.ParseUint(port, 16, 16)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, fmt.Sprintf("port %d", n))
			}
		}
	}
	for _, family := range []string{"udp", "udp6"} {
		for _, f := range table(t, pid, family) {
			if len(f) > 9 && mine[f[9]] {
				out = append(out, family+" "+f[1])
			}
		}
	}
	for _, f := range table(t, pid, "unix") {
		const accepts = 1 << 16 // __SO_ACCEPTCON
		if len(f) < 8 || !mine[f[6]] {
			continue
		}
		if flags, err := strconv.ParseUint(f[3], 16, 32); err == nil && flags&accepts != 0 {
			out = append(out, filepath.Base(f[7]))
		}
	}
	slices.Sort(out)
	return slices.Compact(out) // one socket a worker
}

func inodes(t *testing.T, pid int) map[string]bool {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // closed since
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			out[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return out
}

// table gives the fields of the rows of /proc/<pid>/net/<name>.
func table(t *testing.T, pid int, name string) [][]string {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out [][]string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		out = append(out, strings.Fields(lines.Text()))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func portOf(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return "port " + u.Port()
}

// found gives the address of the one other port that a process listens on.
func found(t *testing.T, on []string, known ...string) string {
	t.Helper()
	for _, s := range on {
		if port, ok := strings.CutPrefix(s, "port "); ok && !slices.Contains(known, s) {
			return "http://" + net.JoinHostPort("127.0.0.1", port)
		}
	}
	t.Fatalf("nothing but %v among %v", known, on)
	return ""
}

func status(t *testing.T, client *http.Client, method, target string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// pages are what somebody who looks around would try.
var pages = []string{
	"/", "/metrics", "/healthz", "/readyz", "/ready", "/stats", "/stats/prometheus", "/config_dump", "/clusters", "/server_info", "/debug/pprof/",
	"/internal/events", "/internal/renew", "/internal/", "/v1/discovery:clusters", "/quitquitquit",
}

// wantPages checks that an address serves these pages and no other.
func wantPages(t *testing.T, what, base string, served ...string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, page := range pages {
		want := http.StatusNotFound
		if slices.Contains(served, page) {
			want = http.StatusOK
		}
		if got := status(t, client, http.MethodGet, base+page); got != want {
			t.Errorf("%s: %s is %d, want %d", what, page, got, want)
		}
	}
}

func TestNothingElseListens(t *testing.T) {
	e := gw.Edges[0]
	envoy, authz, xds := listening(t, e.Envoy.Process.PID()), listening(t, e.Authz.PID()), listening(t, e.XDS.PID())
	livehub, runs := listening(t, gw.Livehubs[0].Process.PID()), listening(t, gw.Runs[0].Process.PID())
	for name, on := range map[string]struct {
		got []string
		max int
		has []string
	}{
		"envoy":   {envoy, 3, []string{portOf(t, e.URL), portOf(t, e.PeopleURL()), "admin.sock"}},
		"authz":   {authz, 5, []string{portOf(t, e.AuthzMetrics), portOf(t, gw.RenewURLs()[0]), "authz.sock", "authz-http.sock"}},
		"xds":     {xds, 3, []string{portOf(t, e.XDSMetrics), "xds.sock"}},
		"livehub": {livehub, 2, []string{portOf(t, gw.Livehubs[0].URL), portOf(t, gw.Livehubs[0].Metrics)}},
		"runs":    {runs, 2, []string{portOf(t, gw.Runs[0].URL), portOf(t, gw.Runs[0].Metrics)}},
	} {
		if len(on.got) != on.max {
			t.Errorf("%s listens on %v, want %d sockets", name, on.got, on.max)
		}
		for _, want := range on.has {
			if !slices.Contains(on.got, want) {
				t.Errorf("%s listens on %v, not on %s", name, on.got, want)
			}
		}
	}
	for what, metrics := range map[string]string{"authz": e.AuthzMetrics, "xds": e.XDSMetrics, "livehub": gw.Livehubs[0].Metrics, "runs": gw.Runs[0].Metrics} {
		wantPages(t, "the metrics of "+what, strings.TrimSuffix(metrics, "/metrics"), "/metrics")
	}
	wantPages(t, "the probes of authz", found(t, authz, portOf(t, e.AuthzMetrics), portOf(t, gw.RenewURLs()[0])), "/healthz", "/readyz")
	wantPages(t, "the probes of xds", found(t, xds, portOf(t, e.XDSMetrics)), "/healthz", "/readyz")
	wantPages(t, "livehub", gw.Livehubs[0].URL, "/healthz", "/readyz")
	wantPages(t, "runs", gw.Runs[0].URL, "/healthz", "/readyz")
	wantPages(t, "the renewals of authz", gw.RenewURLs()[0])
	wantPages(t, "the edge", gw.URL)
	for _, socket := range []string{"admin", "authz", "authz-http", "xds"} {
		info, err := os.Stat(filepath.Join(e.Sockets, socket+".sock"))
		if err != nil || info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("the socket %s has mode %v, %v", socket, info.Mode(), err)
		}
	}
}

func TestTheAdminInterfaceChangesNothing(t *testing.T) {
	client := gw.Edges[0].Envoy.AdminClient()
	defer client.CloseIdleConnections()
	for _, page := range []string{
		"/quitquitquit", "/logging?level=trace", "/runtime_modify?a=b", "/healthcheck/fail", "/reset_counters", "/cpuprofiler?enable=y", "/heapprofiler?enable=y",
		"/reopen_logs", "/certs", "/memory", "/init_dump",
	} {
		if got := status(t, client, http.MethodPost, "http://envoy"+page); got != http.StatusForbidden {
			t.Errorf("%s is %d", page, got)
		}
	}
	if got := status(t, client, http.MethodGet, "http://envoy/ready"); got != http.StatusOK {
		t.Errorf("/ready is %d: nothing was tried", got)
	}
}
