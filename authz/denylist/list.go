package denylist

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/yamlfile"
)

// Kind is what an entry names.
type Kind string

// The kinds of entries.
const (
	// User is a user name, as whoami gives it.
	User Kind = "user"
	// Person is a person: who signs in by that login, and whom a delegate names
	// so. Case does not count.
	Person Kind = "person"
	// Group is a group of the caller.
	Group Kind = "group"
)

// Entry is one entry of a list.
type Entry struct {
	Kind Kind
	Name string
	// Reason is for operators. No caller sees it.
	Reason string
	// Until is when the entry ends; zero when it does not.
	Until time.Time
}

// Refusal is GP-AUTH-006 for who is denied by the entry. The entry's reason is
// in the error's cause alone.
func (e Entry) Refusal(onBehalfOf string) *problem.Error {
	message := ""
	if e.Kind == Person && onBehalfOf != "" {
		message = "this person is denied for now"
	}
	cause := fmt.Errorf("the %s %s is denied by list", e.Kind, yamlfile.Quote(e.Name))
	if e.Reason != "" {
		cause = fmt.Errorf("%w: %s", cause, e.Reason)
	}
	return problem.New(problem.AuthDenied, message).WithCause(cause)
}

// List is a list as a file gave it. The zero value denies nobody; it does not
// change.
type List struct {
	users, people, groups map[string]Entry
	epoch                 string
}

// Len is how many entries there are, those that have ended included.
func (l *List) Len() int { return len(l.users) + len(l.people) + len(l.groups) }

// Over is how many entries have ended by then and deny nobody.
func (l *List) Over(now time.Time) int {
	n := 0
	for _, entries := range []map[string]Entry{l.users, l.people, l.groups} {
		for _, e := range entries {
			if e.over(now) {
				n++
			}
		}
	}
	return n
}

// Epoch stands for the list, as File's Epoch.
func (l *List) Epoch() string { return l.epoch }

// Denies says whether a caller is denied, or the person on whose behalf it
// calls, and by which entry.
func (l *List) Denies(c *authn.Caller, onBehalfOf string, now time.Time) (Entry, bool) {
	if e, ok := find(l.users, c.Username, now); ok {
		return e, true
	}
	if login, ok := strings.CutPrefix(c.Username, authn.PersonPrefix); ok {
		if e, ok := find(l.people, identity.FoldPerson(login), now); ok {
			return e, true
		}
	}
	if onBehalfOf != "" {
		if e, ok := find(l.people, identity.FoldPerson(onBehalfOf), now); ok {
			return e, true
		}
	}
	if len(l.groups) > 0 {
		for _, g := range c.Groups {
			if e, ok := find(l.groups, g, now); ok {
				return e, true
			}
		}
	}
	return Entry{}, false
}

func find(in map[string]Entry, name string, now time.Time) (Entry, bool) {
	e, ok := in[name]
	return e, ok && !e.over(now)
}

func (e Entry) over(now time.Time) bool { return !e.Until.IsZero() && !now.Before(e.Until) }

// epochOf stands for a file's content.
func epochOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
