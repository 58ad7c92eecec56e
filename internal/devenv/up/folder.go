package up

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// maxSockets leaves room for the sockets' names within the 107 bytes that the kernel takes.
const maxSockets = 80

// folder is where one gateway keeps its files.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

// What is in the folder.
func (f folder) state() string     { return f.path("supervisor.json") }
func (f folder) processes() string { return f.path("processes.json") }
func (f folder) env() string       { return f.path("demo.env") }
func (f folder) lock() string      { return f.path("supervisor.lock") } // held while the supervisor runs
func (f folder) upLock() string    { return f.path("up.lock") }         // held while an Up is under way
func (f folder) log() string       { return f.path("supervisor.log") }
func (f folder) gateway() string   { return f.path("gateway") } // all files of the gateway

// sockets is the same folder each time, so that what a crash leaves there is found again.
func (f folder) sockets() string {
	if path := f.path("sockets"); len(path) <= maxSockets {
		return path
	}
	sum := sha256.Sum256([]byte(f))
	return filepath.Join(os.TempDir(), "glidepath-"+hex.EncodeToString(sum[:6]))
}

// write replaces a file as a whole: a reader sees the old one or the new one. Only this user can read it.
func write(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-") // mode 0600
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(data); err != nil {
		_ = tmp.Close()
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return write(path, append(data, '\n'))
}
