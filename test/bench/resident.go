package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"hangar.io/glidepath/internal/devenv/process"
)

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
