package apifake

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// namespaceLog is the namespaces and every change to them, for list and watch.
type namespaceLog struct {
	mu      sync.Mutex
	changes []change
	more    chan struct{} // closed by the next change
	closed  bool
}

type change struct {
	kind   string // ADDED, MODIFIED or DELETED
	object metav1.PartialObjectMetadata
}

// AddNamespace makes a namespace with the UID "uid-of-" and its name.
func (s *Server) AddNamespace(name string) {
	s.watched.add("ADDED", name, nil)
}

// EndNamespace begins the deletion of a namespace; RemoveNamespace ends it.
func (s *Server) EndNamespace(name string) {
	now := metav1.NewTime(time.Now())
	s.watched.add("MODIFIED", name, &now)
}

// RemoveNamespace takes a namespace away.
func (s *Server) RemoveNamespace(name string) {
	s.watched.add("DELETED", name, nil)
}

func (l *namespaceLog) add(kind, name string, deletion *metav1.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, change{kind: kind, object: metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-of-" + name), DeletionTimestamp: deletion,
			ResourceVersion: strconv.Itoa(len(l.changes) + 1), Labels: map[string]string{"team": "a"},
		},
	}})
	l.wake()
}

func (l *namespaceLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wake()
}

func (l *namespaceLog) wake() {
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
}

// after gives the changes after the first n, a channel that the next one
// closes, and whether there will be no more.
func (l *namespaceLog) after(n int) (changes []change, more <-chan struct{}, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == nil {
		l.more = make(chan struct{})
	}
	return l.changes[n:len(l.changes):len(l.changes)], l.more, l.closed
}

func (l *namespaceLog) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case q.Get("sendInitialEvents") != "": // an API server without streamed lists
		refuse(w, http.StatusUnprocessableEntity, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	case q.Get("watch") != "":
		l.watch(w, r, q.Get("resourceVersion"))
	default:
		l.list(w)
	}
}

func (l *namespaceLog) list(w http.ResponseWriter) {
	changes, _, _ := l.after(0)
	there := map[string]metav1.PartialObjectMetadata{}
	for _, c := range changes {
		there[c.object.Name] = c.object
		if c.kind == "DELETED" {
			delete(there, c.object.Name)
		}
	}
	list := metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(len(changes))},
		Items:    []metav1.PartialObjectMetadata{},
	}
	for _, o := range there {
		list.Items = append(list.Items, o)
	}
	answer(w, http.StatusOK, list)
}

func (l *namespaceLog) watch(w http.ResponseWriter, r *http.Request, from string) {
	n, err := strconv.Atoi(from)
	if err != nil {
		refuse(w, http.StatusBadRequest, "resourceVersion: Invalid value")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	encoder, flusher := json.NewEncoder(w), http.NewResponseController(w)
	for {
		changes, more, closed := l.after(n)
		for _, c := range changes {
			event := map[string]any{"type": c.kind, "object": c.object}
			if encoder.Encode(event) != nil {
				return
			}
		}
		n += len(changes)
		if flusher.Flush() != nil || closed {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}
