package devenv_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func unmarshal(data []byte, into any) error { return json.Unmarshal(data, into) }

// shortDir is a temporary folder whose path is short enough for sockets, whatever the test's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gp-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// eventually polls for what becomes true a moment after an answer.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-ticker.C:
		}
	}
}
