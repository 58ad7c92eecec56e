package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const childPatience = 5 * time.Second

// state is what the supervisor writes down about itself, for those who come later.
type state struct {
	Supervisor identity   `json:"supervisor"`
	Children   []identity `json:"children"` // what the supervisor has started
	Port       int        `json:"port"`
	Ready      bool       `json:"ready"` // the gateway answers
}

// entry is one line of processes.json.
type entry struct {
	Name      string   `json:"name"`
	PID       int      `json:"pid"`
	Addresses []string `json:"addresses"`
}

// read returns the state and whether its supervisor runs.
func (f folder) read() (st state, running bool, err error) {
	data, err := os.ReadFile(f.state())
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, false, nil
	}
	if err != nil {
		return state{}, false, fmt.Errorf("reading what runs: %w", err)
	}
	if err := json.Unmarshal(data, &st); err != nil {
		return state{}, false, fmt.Errorf("reading what runs: %s: %w", f.state(), err)
	}
	return st, st.Supervisor.running(), nil
}

// endChildren ends what the supervisor started, should it still run: the kernel ends it with its supervisor. A child that
// cannot be ended keeps none of the others.
func (st state) endChildren(ctx context.Context) error {
	var faults []error
	for _, child := range st.Children {
		if _, err := child.end(ctx, childPatience); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// forget removes what is true only while the gateway runs. The logs stay until the next start.
func (f folder) forget() error {
	var faults []error
	for _, path := range []string{f.env(), f.processes(), f.state()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func (f folder) entries() ([]entry, error) {
	data, err := os.ReadFile(f.processes())
	if err != nil {
		return nil, fmt.Errorf("reading what runs: %w", err)
	}
	var entries []entry
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("reading what runs: %s: %w", f.processes(), err)
	}
	return entries, nil
}
