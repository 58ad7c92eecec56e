package api_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTheGeneratedServersAreCurrent makes every server anew and compares, so
// that neither an edit by hand nor a forgotten `go generate` stays unseen. The
// generator of the table and the contract has a test of its own.
func TestTheGeneratedServersAreCurrent(t *testing.T) {
	t.Parallel()
	configs, err := filepath.Glob("*/oapi-codegen.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(configs) != 3 {
		t.Fatalf("there are %d configurations, not those of the 3 backends that serve: %q", len(configs), configs)
	}
	for _, config := range configs {
		t.Run(filepath.Dir(config), func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), "go", "tool", "oapi-codegen", "-config", config, "openapi.yaml")
			var messages bytes.Buffer
			command.Stderr = &messages
			want, err := command.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, &messages)
			}
			files, err := filepath.Glob(filepath.Join(filepath.Dir(config), "*.gen.go"))
			if err != nil || len(files) != 1 {
				t.Fatalf("generated files %q: %v", files, err)
			}
			got, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, got) {
				t.Errorf("%s is not what openapi.yaml gives: run go generate ./api", files[0])
			}
		})
	}
}
