package kubelist_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"hangar.io/glidepath/internal/kubelist"
)

const (
	added    = `{"type":"ADDED","object":{"apiVersion":"tekton.dev/v1","kind":"TaskRun","metadata":{"managedFields":[{"a":1}],"name":"t","namespace":"ns","uid":"u","resourceVersion":"7"}}}` + "\n"
	shown    = `{"apiVersion":"tekton.dev/v1","kind":"TaskRun","metadata":{"name":"t","namespace":"ns","uid":"u","resourceVersion":"7"}}`
	bookmark = `{"type":"BOOKMARK","object":{"apiVersion":"tekton.dev/v1","kind":"TaskRun","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
)

func TestAWatchAsksForWhatIsNotKnownAndGivesEventsAsTheyAreToBeShown(t *testing.T) {
	s := newServer(t, status(http.StatusOK, added+bookmark), status(http.StatusOK, ""))
	c := s.client(t, limits)
	q := kubelist.Query{Kind: taskRuns, Namespace: "ns"}
	w, err := c.Watch(t.Context(), q, kubelist.WatchFrom{InitialEvents: true, Timeout: 90 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	e, err := w.Next()
	if err != nil || e.Type != watch.Added || string(e.JSON) != shown || e.Meta != (kubelist.Meta{Namespace: "ns", Name: "t", UID: "u", ResourceVersion: "7"}) {
		t.Errorf("got %+v %s, %v", e, e.JSON, err)
	}
	if e, err = w.Next(); err != nil || e.Type != watch.Bookmark || !e.InitialEventsEnd || e.ResourceVersion != "9" || e.JSON != nil {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := w.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("a watch that ended gives %v", err)
	}
	again, err := c.Watch(t.Context(), q, kubelist.WatchFrom{ResourceVersion: "9", Timeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	const base = "GET /apis/tekton.dev/v1/namespaces/ns/taskruns?allowWatchBookmarks=true&"
	for i, want := range []string{"resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=90&watch=true", "resourceVersion=9&timeoutSeconds=1&watch=true"} {
		if s.asked[i] != base+want {
			t.Errorf("asked %s", s.asked[i])
		}
	}
}

func TestInitialEventsAreTogetherNoMoreThanAList(t *testing.T) {
	many := int(limits.Bytes)/len(added) + 1
	s := newServer(t, status(http.StatusOK, strings.Repeat(added, many)+bookmark), status(http.StatusOK, bookmark+strings.Repeat(added, many)))
	c := s.client(t, limits)
	read := func() error {
		w, err := c.Watch(t.Context(), kubelist.Query{Kind: taskRuns, Namespace: "ns"}, kubelist.WatchFrom{InitialEvents: true, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for {
			if _, err := w.Next(); err != nil {
				return err
			}
		}
	}
	if err := read(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("more than a list may be: %v", err)
	}
	if err := read(); !errors.Is(err, io.EOF) {
		t.Errorf("as much after them: %v", err)
	}
}

func TestAWatchThatGoesWrongIsNoEvent(t *testing.T) {
	const expired = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
	for name, tc := range map[string]struct {
		code  int
		body  string
		is    func(error) bool
		opens bool
	}{
		"not granted":               {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, apierrors.IsForbidden, false},
		"not granted, without JSON": {403, "forbidden", apierrors.IsForbidden, false},
		"from too long ago":         {410, expired, apierrors.IsResourceExpired, false},
		"expired on the way":        {200, `{"type":"ERROR","object":` + expired + `}`, apierrors.IsResourceExpired, true},
		"cut in an event":           {200, added[:len(added)-9], func(err error) bool { return err != nil && !errors.Is(err, io.EOF) }, true},
		"of another namespace":      {200, strings.Replace(added, `"ns"`, `"other"`, 1), isError, true},
		"of another kind":           {200, strings.Replace(added, "TaskRun", "Secret", 1), isError, true},
		"of no known type":          {200, strings.Replace(added, "ADDED", "SEEN", 1), isError, true},
		"no event at all":           {200, "<html>", isError, true},
		"larger than it may be":     {200, strings.Replace(added, `"u"`, `"`+strings.Repeat("u", int(limits.Bytes))+`"`, 1), isError, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, status(tc.code, tc.body))
			w, err := s.client(t, limits).Watch(t.Context(), kubelist.Query{Kind: taskRuns, Namespace: "ns"}, kubelist.WatchFrom{ResourceVersion: "1", Timeout: time.Minute})
			if (err == nil) != tc.opens {
				t.Fatalf("it begins with %v", err)
			}
			if err == nil {
				defer w.Close()
				_, err = w.Next()
			}
			if !tc.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func isError(err error) bool { return err != nil && !errors.Is(err, io.EOF) }
