package feed

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Index says which of the two kinds is meant.
type Index int

// The kinds of a feed.
const (
	PipelineRuns Index = iota
	TaskRuns
	kindCount
)

// Position says how far each kind was seen: every change up to that
// resourceVersion, and no later one.
type Position [kindCount]uint64

// covers says whether whoever is at p has seen all that whoever is at q has.
func (p Position) covers(q Position) bool {
	return p[PipelineRuns] >= q[PipelineRuns] && p[TaskRuns] >= q[TaskRuns]
}

// later gives the later of both positions, kind by kind.
func (p Position) later(q Position) Position {
	return Position{max(p[PipelineRuns], q[PipelineRuns]), max(p[TaskRuns], q[TaskRuns])}
}

// tagOf tells namespaces apart in ids: one that is made again under its name has
// another UID.
func tagOf(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return hex.EncodeToString(sum[:4])
}

// id is the form of a position in a stream: the namespace's tag, then both
// versions.
func (p Position) id(tag string) string {
	b := make([]byte, 0, len(tag)+2*21)
	b = append(append(b, tag...), '-')
	b = append(strconv.AppendUint(b, p[PipelineRuns], 10), '-')
	return string(strconv.AppendUint(b, p[TaskRuns], 10))
}

var errID = errors.New("not the id of an event")

// parseID reads what id gives, and nothing else: a viewer sends it.
func parseID(id string) (tag string, p Position, err error) {
	tag, versions, ok := strings.Cut(id, "-")
	if !ok || len(tag) != 8 || strings.Trim(tag, "0123456789abcdef") != "" {
		return "", Position{}, errID
	}
	runs, tasks, ok := strings.Cut(versions, "-")
	if !ok {
		return "", Position{}, errID
	}
	if p[PipelineRuns], err = parseVersion(runs); err != nil {
		return "", Position{}, errID
	}
	if p[TaskRuns], err = parseVersion(tasks); err != nil {
		return "", Position{}, errID
	}
	return tag, p, nil
}

// parseVersion reads a resourceVersion in its one form. Kubernetes promises that
// those of one resource are numbers that grow.
func parseVersion(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || strconv.FormatUint(v, 10) != s {
		return 0, fmt.Errorf("%q is no resourceVersion", s)
	}
	return v, nil
}
