package streamquota_test

import (
	"sync"
	"testing"

	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/streamquota"
)

func TestStreamsAreCountedByCallerAndByPerson(t *testing.T) {
	type opening struct {
		caller, person string
		ok             bool
	}
	for name, openings := range map[string][]opening{
		"a caller may have as many as the limit": {
			{"ci", "", true}, {"ci", "", true}, {"ci", "", true}, {"ci", "", true}, {"ci", "", false}, {"other", "", true},
		},
		"a person has less, and takes nothing from others": {
			{"tower", "ana", true}, {"tower", "ana", true}, {"tower", "ana", false}, {"tower", "bob", true},
		},
		"a person is the same however a delegate spells them": {
			{"tower", "ana", true}, {"tower", "people:Ana", true}, {"tower", "ANA", false}, {"tower", "People:ana", false}, {"tower", "bob", true},
		},
		"all of a delegate's people share what the caller may have": {
			{"tower", "a", true}, {"tower", "b", true}, {"tower", "c", true}, {"tower", "d", true}, {"tower", "e", false},
		},
		"the same name through another delegate is another person": {
			{"tower", "ana", true}, {"tower", "ana", true}, {"autopilot", "ana", true},
		},
		"a person who calls by themselves is one": {
			{"people:ana", "", true}, {"people:ana", "", true}, {"people:ana", "", false}, {"people:bob", "", true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := streamquota.New(streamquota.Limits{Caller: 4, Person: 2})
			for i, o := range openings {
				release, err := q.Open(o.caller, o.person)
				if (err == nil) != o.ok || (release != nil) != o.ok {
					t.Errorf("stream %d of %s for %q: %v", i+1, o.caller, o.person, err)
				}
				if err != nil && problem.From(err).Rule.ID != "GP-API-429" {
					t.Errorf("refused with %v", err)
				}
			}
		})
	}
}

func TestAStreamThatIsReleasedMakesRoomOnce(t *testing.T) {
	q := streamquota.New(streamquota.Limits{Caller: 2, Person: 2})
	first, err := q.Open("tower", "ana")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Open("tower", "ana"); err != nil {
		t.Fatal(err)
	}
	first()
	first()
	if _, err := q.Open("tower", "ana"); err != nil {
		t.Error(err)
	}
	if _, err := q.Open("tower", "ana"); err == nil {
		t.Error("a second release made room as well")
	}
}

func TestManyOpenAndReleaseAtOnce(t *testing.T) {
	q := streamquota.New(streamquota.Limits{Caller: 8, Person: 8})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 200 {
				if release, err := q.Open("tower", "ana"); err == nil {
					release()
				}
			}
		})
	}
	all.Wait()
	for i := range 8 {
		if _, err := q.Open("tower", "ana"); err != nil {
			t.Fatalf("stream %d: %v", i+1, err)
		}
	}
}
