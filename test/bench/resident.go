package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/process"
)

// allocated is how many bytes the Envoy of an edge has allocated, as it says itself once a second. What is resident has also
// what it has freed and keeps, which hides what comes later.
func allocated(ctx context.Context, e *devenv.Edge) (int64, error) {
	client := e.Envoy.AdminClient()
	defer client.CloseIdleConnections()
	const name = "server.memory_allocated"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://envoy/stats?filter=^"+name+"$", nil)
	if err != nil {
		return 0, fmt.Errorf("asking Envoy for its memory: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("asking Envoy for its memory: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return 0, fmt.Errorf("asking Envoy for its memory: %w", err)
	}
	value, found := bytes.CutPrefix(bytes.TrimSpace(text), []byte(name+": "))
	if !found {
		return 0, fmt.Errorf("asking Envoy for its memory: it says %q", text)
	}
	size, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("asking Envoy for its memory: %w", err)
	}
	return size, nil
}

// resident is how many bytes of memory a process has in use.
func resident(p *process.Process) (int64, error) { return statusBytes(p, "VmRSS") }

// mostResident is the most that it had in use since its start.
func mostResident(p *process.Process) (int64, error) { return statusBytes(p, "VmHWM") }

// statusBytes reads a line of proc_pid_status(5) that is in kilobytes.
func statusBytes(p *process.Process, name string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of %s: %w", p.Name(), err)
	}
	for line := range bytes.Lines(status) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		if string(key) != name {
			continue
		}
		kb, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the memory of %s: %w", p.Name(), err)
		}
		return kb << 10, nil
	}
	return 0, fmt.Errorf("reading the memory of %s: no %s", p.Name(), name)
}
