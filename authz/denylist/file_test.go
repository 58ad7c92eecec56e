package denylist_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hangar.io/glidepath/authz/denylist"
	"hangar.io/glidepath/internal/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file+".next", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".next", file); err != nil {
		t.Fatal(err)
	}
}

// follow opens a file's list and runs it.
func follow(t *testing.T, file string) (*denylist.File, *prometheus.Registry) {
	t.Helper()
	f, err := denylist.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	f.MustRegister(reg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, reg
}

func await(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		t.Fatal("no change was noticed")
	}
}

func rule(err error) string {
	if err == nil {
		return ""
	}
	return problem.From(err).Rule.ID
}

func TestAListFollowsItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deny.yaml")
	write(t, file, "version: \"1\"\n")
	f, _ := follow(t, file)
	ana := caller(t, "ana")
	if err := f.Check(ana, ""); err != nil {
		t.Fatal(err)
	}
	first, changed := f.Epoch()
	write(t, file, "version: \"1\"\nusers: [{name: ana, reason: top secret}]\n")
	await(t, changed)
	second, changed := f.Epoch()
	err := f.Check(ana, "")
	if rule(err) != "GP-AUTH-006" || first == second {
		t.Errorf("%v, epochs %s and %s", err, first, second)
	}
	body := problem.From(err).Body("")
	if strings.Contains(body.Message+body.Hint, "secret") || !strings.Contains(err.Error(), "top secret") {
		t.Errorf("the caller reads %q, the log %q", body.Message, err)
	}
	write(t, file, "version: \"1\"\n")
	await(t, changed)
	if third, _ := f.Epoch(); f.Check(ana, "") != nil || third != first {
		t.Errorf("%v, epoch %s", f.Check(ana, ""), third)
	}
}

func TestABadFileChangesNothingAndIsSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deny.yaml")
	write(t, file, "version: \"1\"\nusers: [ana]\n")
	f, reg := follow(t, file)
	const stale = "glidepath_authz_denylist_stale"
	gauge := func() float64 {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range families {
			if m.GetName() == stale {
				return m.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return -1
	}
	until := func(want float64) {
		t.Helper()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		late := time.After(20 * time.Second)
		for gauge() != want {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("it stays %v", gauge())
			}
		}
	}
	for name, spoil := range map[string]func(){
		"bad":   func() { write(t, file, "version: \"1\"\nusers: ana\n") },
		"empty": func() { write(t, file, "") },
		"gone": func() {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		},
	} {
		spoil()
		until(1)
		if rule(f.Check(caller(t, "ana"), "")) != "GP-AUTH-006" {
			t.Errorf("%s: nobody is denied", name)
		}
		write(t, file, "version: \"1\"\nusers: [ana]\n")
		until(0)
	}
}

func TestAProcessThatCannotReadItsListDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	write(t, bad, "version: \"1\"\nusers: ana\n")
	for name, file := range map[string]string{
		"missing": filepath.Join(dir, "none.yaml"), "in no folder": filepath.Join(dir, "none", "deny.yaml"), "bad": bad,
	} {
		f, err := denylist.Open(file)
		if err == nil {
			t.Errorf("%s: it opens", name)
			_ = f.Close()
		} else if name == "bad" && !strings.Contains(err.Error(), "bad.yaml:2:8:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWithoutAFileNobodyIsDenied(t *testing.T) {
	f, _ := follow(t, "")
	if err := f.Check(caller(t, "ana", "g"), "bob"); err != nil {
		t.Error(err)
	}
	if epoch, _ := f.Epoch(); epoch == "" {
		t.Error("it has no epoch")
	}
}

func TestAPersonIsToldThatThePersonIsDenied(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deny.yaml")
	write(t, file, "version: \"1\"\npeople: [ana]\n")
	f, _ := follow(t, file)
	err := f.Check(caller(t, "tower"), "ana")
	if rule(err) != "GP-AUTH-006" || problem.From(err).Body("").Message != "this person is denied for now" {
		t.Errorf("got %v", err)
	}
}
