package feed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Kind is one of the two kinds of objects that a feed follows.
type Kind int

// The kinds of a feed.
const (
	PipelineRuns Kind = iota
	TaskRuns
	kindCount
)

// Position says how far each kind was seen.
type Position [kindCount]Place

// Place is how far one kind was seen: every change up to a version, and no later
// one.
type Place struct {
	// Version is a resourceVersion.
	Version uint64
	// Sum is that of the objects that existed then: see weigh.
	Sum uint64
}

// sums is what is known of both kinds.
type sums [kindCount]uint64

// weigh gives what an object adds to the sum of all known objects. Two replicas
// that know the same objects at the same versions have the same sum, in whatever
// order they learned of them. The sums differ when one has lost a change. 64 bits
// of a good hash are enough: a viewer who forges a sum only misses changes itself.
func weigh(name string, version uint64) uint64 {
	b := make([]byte, 0, 320) // a name has at most 253
	digest := sha256.Sum256(binary.BigEndian.AppendUint64(append(b, name...), version))
	return binary.BigEndian.Uint64(digest[:])
}

// covers says whether a viewer at p has seen everything that a viewer at q has.
func (p Position) covers(q Position) bool {
	return p[PipelineRuns].Version >= q[PipelineRuns].Version && p[TaskRuns].Version >= q[TaskRuns].Version
}

// sums gives what is known at p.
func (p Position) sums() sums { return sums{p[PipelineRuns].Sum, p[TaskRuns].Sum} }

// later gives the later of both positions, kind by kind.
func (p Position) later(q Position) Position {
	for kind := range kindCount {
		if q[kind].Version >= p[kind].Version {
			p[kind] = q[kind]
		}
	}
	return p
}

// earlier gives the earlier of both positions, kind by kind.
func (p Position) earlier(q Position) Position {
	for kind := range kindCount {
		if q[kind].Version < p[kind].Version {
			p[kind] = q[kind]
		}
	}
	return p
}

// tagOf tells namespaces apart in ids: one that is made again under its name has
// another UID.
func tagOf(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return hex.EncodeToString(sum[:4])
}

// id is the form of a position in a stream: the namespace's tag, both versions,
// and both sums.
func (p Position) id(tag string) string {
	b := make([]byte, 0, len(tag)+2*21+1+sumDigits)
	b = append(append(b, tag...), '-')
	b = append(strconv.AppendUint(b, p[PipelineRuns].Version, 10), '-')
	b = append(strconv.AppendUint(b, p[TaskRuns].Version, 10), '-')
	for _, place := range p {
		b = hex.AppendEncode(b, binary.BigEndian.AppendUint64(nil, place.Sum))
	}
	return string(b)
}

const (
	tagDigits = 8
	sumDigits = 2 * 16
	hexDigits = "0123456789abcdef"
)

var errID = errors.New("not the id of an event")

// parseID reads what id gives, and nothing else: a viewer sends it.
func parseID(id string) (tag string, p Position, err error) {
	parts := strings.SplitN(id, "-", 5)
	if len(parts) != 4 || !isHex(parts[0], tagDigits) || !isHex(parts[3], sumDigits) {
		return "", Position{}, errID
	}
	for kind := range kindCount {
		if p[kind].Version, err = parseVersion(parts[1+kind]); err != nil {
			return "", Position{}, errID
		}
		if p[kind].Sum, err = strconv.ParseUint(parts[3][16*kind:16*kind+16], 16, 64); err != nil {
			return "", Position{}, errID
		}
	}
	return parts[0], p, nil
}

func isHex(s string, digits int) bool { return len(s) == digits && strings.Trim(s, hexDigits) == "" }

// parseVersion reads a resourceVersion in its one form. Kubernetes promises that
// those of one resource are numbers that grow.
func parseVersion(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || strconv.FormatUint(v, 10) != s {
		return 0, fmt.Errorf("%q is no resourceVersion", s)
	}
	return v, nil
}
