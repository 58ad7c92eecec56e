// Package streamquota owns how many streams one caller may hold open on one
// replica, and one person, so that nobody takes all of a replica's.
package streamquota

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
)

// Limits are how many streams may be open at once on this replica.
type Limits struct {
	Caller int `name:"streams-per-caller" env:"STREAMS_PER_CALLER" default:"50" help:"Streams that one caller may hold open on this replica, a delegate's for all people together."`
	Person int `name:"streams-per-person" env:"STREAMS_PER_PERSON" default:"10" help:"Streams that one person may hold open on this replica, by themselves or through one delegate."`
}

// Validate says what is wrong with the limits.
func (l Limits) Validate() error {
	if l.Caller < 1 || l.Person < 1 {
		return errors.New("--streams-per-caller and --streams-per-person: less than one stream")
	}
	return nil
}

// Quota counts open streams. It keeps nothing of who has none, and is safe for
// concurrent use.
type Quota struct {
	limits Limits

	mu      sync.Mutex
	callers map[string]int
	people  map[person]int
}

// person is a person as one caller names them, whose case does not count:
// another caller's person of the same name may be another person.
type person struct{ caller, name string }

// New gives a Quota.
func New(l Limits) *Quota {
	return &Quota{limits: l, callers: map[string]int{}, people: map[person]int{}}
}

// Open counts a stream of a caller, on behalf of a person where a delegate
// names one, until release is called; calling it again does nothing. The error
// is GP-API-429, and then there is nothing to release.
func (q *Quota) Open(caller, onBehalfOf string) (release func(), err error) {
	who := person{caller: caller, name: identity.FoldPerson(onBehalfOf)}
	counted := onBehalfOf != "" || strings.HasPrefix(caller, identity.PersonPrefix)
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case counted && q.people[who] >= q.limits.Person:
		return nil, refusal("for this person", q.limits.Person)
	case q.callers[caller] >= q.limits.Caller:
		return nil, refusal("for this caller", q.limits.Caller)
	}
	q.callers[caller]++
	if counted {
		q.people[who]++
	}
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		less(q.callers, caller)
		if counted {
			less(q.people, who)
		}
	}), nil
}

func refusal(whose string, limit int) error {
	return problem.New(problem.TooManyStreams, fmt.Sprintf("%d streams are open %s, as many as may be", limit, whose))
}

func less[K comparable](m map[K]int, key K) {
	if m[key]--; m[key] <= 0 {
		delete(m, key)
	}
}
