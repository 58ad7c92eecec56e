package devenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ToolsVariable names the environment variable that says where the tools are, when not in .tools/bin of the repository.
const ToolsVariable = "GLIDEPATH_TOOLS"

const module = "module hangar.io/glidepath\n"

// Root finds the repository's root folder, upwards from the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for the repository: %w", err)
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte(module)) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("this folder is not inside a clone of the glidepath repository: change into one")
		}
		dir = parent
	}
}

// Tool returns the path of a tool that `make tools` fetched: envoy, redis-server, etcd or kube-apiserver.
func Tool(name string) (string, error) {
	dir := os.Getenv(ToolsVariable)
	if dir == "" {
		root, err := Root()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, ".tools", "bin")
	}
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s is not in %s: run `make tools`", name, dir)
	}
	return path, nil
}
