package devenv_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/devenv"
)

func TestTheRootIsFoundFromAnyFolderOfTheRepository(t *testing.T) {
	root, err := devenv.Root()
	must(t, err)
	if _, err := os.Stat(filepath.Join(root, "deploy", "tools")); err != nil {
		t.Errorf("%s is not the root: %v", root, err)
	}
	t.Chdir(t.TempDir())
	if root, err := devenv.Root(); err == nil || !strings.Contains(err.Error(), "not inside a clone of the glidepath repository") {
		t.Errorf("elsewhere: %q, %v", root, err)
	}
}

func TestAMissingToolIsOneSentenceThatSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(devenv.ToolsVariable, dir)
	must(t, os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o600)) // there, and no program
	for _, name := range []string{"envoy", "etcd"} {
		if _, err := devenv.Tool(name); err == nil || err.Error() != name+" is not in "+dir+": run `make tools`" {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "envoy"), nil, 0o700))
	path, err := devenv.Tool("envoy")
	must(t, err)
	if path != filepath.Join(dir, "envoy") {
		t.Errorf("found %s", path)
	}
}
