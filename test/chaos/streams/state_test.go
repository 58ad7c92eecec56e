package streams_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hangar.io/glidepath/internal/sse"
)

// key names an object within a namespace.
type key struct{ kind, name string }

// kinds of objects, in the order of an id's versions.
var kinds = [2]string{"PipelineRun", "TaskRun"}

// position is what an id says: how far each kind was seen.
type position [2]uint64

// move is a change as a viewer got it, or as the cluster made it.
type move struct {
	key

	version string // of the object; empty when it went
}

// state is what is known of a namespace: the JSON of each object, by its version.
type state map[key]version

type version struct {
	number string
	json   json.RawMessage
}

// differs says how what a viewer knows differs from what there is; empty when it does not.
func (s state) differs(want state) string {
	var faults []string
	for k, v := range want {
		if s[k].number != v.number {
			faults = append(faults, fmt.Sprintf("%s %s is at %q, not %q", k.kind, k.name, v.number, s[k].number))
		}
	}
	for k, v := range s {
		if _, there := want[k]; !there {
			faults = append(faults, fmt.Sprintf("%s %s at %q is gone", k.kind, k.name, v.number))
		}
	}
	slices.Sort(faults)
	if len(faults) > 5 {
		faults = append(faults[:5], fmt.Sprintf("and %d more", len(faults)-5))
	}
	return strings.Join(faults, "; ")
}

// fold takes an event into what is known, and gives the change if it is one.
func (s state) fold(e sse.Event) (move, error) {
	switch e.Type {
	case "snapshot":
		return move{}, s.anew(e.Data)
	case "change":
		return s.change(e.Data)
	case "reset", "end":
		return move{}, nil
	default:
		return move{}, fmt.Errorf("an event %q", e.Type)
	}
}

func (s state) anew(data []byte) error {
	var all struct{ PipelineRuns, TaskRuns []json.RawMessage }
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("a snapshot: %w", err)
	}
	clear(s)
	for i, list := range [2][]json.RawMessage{all.PipelineRuns, all.TaskRuns} {
		for _, raw := range list {
			k, v, err := read(kinds[i], raw)
			if err != nil {
				return fmt.Errorf("a snapshot: %w", err)
			}
			if _, twice := s[k]; twice {
				return fmt.Errorf("a snapshot with two %s %s", k.kind, k.name)
			}
			s[k] = v
		}
	}
	return nil
}

func (s state) change(data []byte) (move, error) {
	var c struct {
		Type, Kind, Name string
		Object           json.RawMessage
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return move{}, fmt.Errorf("a change: %w", err)
	}
	k := key{c.Kind, c.Name}
	if c.Type == "delete" {
		delete(s, k)
		return move{key: k}, nil
	}
	got, v, err := read(c.Kind, c.Object)
	switch {
	case err != nil:
		return move{}, fmt.Errorf("a change: %w", err)
	case c.Type != "upsert" || got != k:
		return move{}, fmt.Errorf("a change %q of %v that brings %v", c.Type, k, got)
	}
	s[k] = v
	return move{key: k, version: v.number}, nil
}

// follows says what is wrong with a move of an object that was at a version, or not there.
func (m move) follows(known string) error {
	switch {
	case m.version == "" && known == "":
		return fmt.Errorf("%s %s goes, and was not there", m.kind, m.name)
	case m.version != "" && known != "" && number(m.version) <= number(known):
		return fmt.Errorf("%s %s moves from version %s to %s", m.kind, m.name, known, m.version)
	}
	return nil
}

// read gives what names an object, and its version.
func read(kind string, raw json.RawMessage) (key, version, error) {
	var o struct {
		Kind     string
		Metadata struct{ Name, ResourceVersion string }
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return key{}, version{}, err
	}
	if o.Kind != kind || o.Metadata.Name == "" || number(o.Metadata.ResourceVersion) == 0 {
		return key{}, version{}, fmt.Errorf("%.100s is no %s", raw, kind)
	}
	return key{kind, o.Metadata.Name}, version{o.Metadata.ResourceVersion, slices.Clone(raw)}, nil
}

// number is a resourceVersion; 0 is none.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// parseID reads an id: a tag, how far each kind was seen, and sums that are the gateway's own affair.
func parseID(id string) (tag string, at position, err error) {
	parts := strings.Split(id, "-")
	if len(parts) != 4 {
		return "", at, fmt.Errorf("the id %q", id)
	}
	for i := range at {
		if at[i], err = strconv.ParseUint(parts[i+1], 10, 64); err != nil {
			return "", at, fmt.Errorf("the id %q: %w", id, err)
		}
	}
	return parts[0], at, nil
}

func (s state) clone() state { return maps.Clone(s) }
