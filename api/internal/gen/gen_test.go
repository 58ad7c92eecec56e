package main

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"
)

const packageDir = "../.."

func source(t *testing.T) []byte {
	t.Helper()
	s, err := fs.ReadFile(os.DirFS(packageDir), specFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func failures(t *testing.T) []byte {
	t.Helper()
	s, err := fs.ReadFile(os.DirFS(packageDir), failuresFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTheGeneratedFilesAreCurrent generates again and compares, so that neither
// an edit by hand nor a forgotten `go generate` stays unseen.
func TestTheGeneratedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	files, err := generate(source(t), failures(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := fs.ReadFile(os.DirFS(packageDir), name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s is not what openapi.yaml and known-failures.yaml give: run go generate ./api", name)
		}
	}
}

// TestTheSameSourceGivesTheSameBytes repeats, since the parsed paths are a map
// whose order differs from one reading to the next.
func TestTheSameSourceGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	first, err := generate(source(t), failures(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again, err := generate(source(t), failures(t))
		if err != nil {
			t.Fatal(err)
		}
		for name := range first {
			if !bytes.Equal(first[name], again[name]) {
				t.Fatalf("%s differs from one run to the next", name)
			}
		}
	}
}

func TestRunWritesBesideTheSource(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(specFile, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(); err == nil {
		t.Error("missing known failures are no error")
	}
	if err := os.WriteFile(failuresFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"operations.gen.go", "glidepath-contract.json"} {
		if written, err := fs.ReadFile(os.DirFS("."), name); err != nil || !strings.Contains(string(written), "listThings") {
			t.Errorf("%s: %v: %s", name, err, written)
		}
	}
	t.Chdir(t.TempDir())
	if err := run(); err == nil {
		t.Error("a missing source is no error")
	}
}
