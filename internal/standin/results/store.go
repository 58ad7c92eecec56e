package results

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Record is one stored object.
type Record struct {
	Parent, Result, Name string // the segments of its full name
	// UID is the server's own, not the object's. Empty: made from the full name.
	UID string
	// Type is as in data.type: tekton.dev/v1.PipelineRun.
	Type string
	// Value is what is stored, JSON or not.
	Value []byte
	// Created and Updated are when it was stored. Updated zero: as Created.
	Created, Updated time.Time
	// Etag empty: made from UID and Updated.
	Etag string
	// Base64 is sent instead of the base64 of Value when it is not empty.
	Base64 string
}

// Result is what holds the records of a run, or of an event's runs.
type Result struct {
	Parent, Name, UID string
	Created, Updated  time.Time
	Etag              string
	Annotations       map[string]string
	Summary           *Summary // nil for none
}

// Summary tells about the run of a Result.
type Summary struct {
	Record      string            `json:"record,omitempty"`
	Type        string            `json:"type,omitempty"`
	StartTime   string            `json:"start_time,omitempty"`
	EndTime     string            `json:"end_time,omitempty"`
	Status      string            `json:"status,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// row is a stored Record or Result, and what filters ask of it.
type row struct {
	parent, result, name string
	uid, kind, etag      string
	created, updated     time.Time

	value  packed
	base64 string
	index  index

	annotations map[string]string
	summary     *Summary
}

// fullName of a record, or of a Result when it has no name.
func (r *row) fullName(kind string) string {
	if r.name == "" {
		return r.parent + "/results/" + r.result
	}
	return r.parent + "/results/" + r.result + "/" + kind + "/" + r.name
}

// table is rows in the orders in which they are asked for.
type table struct {
	byName map[string]*row
	orders map[string][]*row // by the name of a field, ascending; made when asked for
}

func newTable() *table { return &table{byName: map[string]*row{}} }

func (t *table) put(key string, r *row) {
	t.byName[key] = r
	t.orders = nil
}

func (t *table) remove(key string) {
	delete(t.byName, key)
	t.orders = nil
}

// sorted gives the rows in ascending order of a field, then of their UID. The
// caller does not change it.
func (t *table) sorted(field string) []*row {
	if rows, ok := t.orders[field]; ok {
		return rows
	}
	rows := make([]*row, 0, len(t.byName))
	for _, r := range t.byName {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return cmp.Or(a.key(field).Compare(b.key(field)), strings.Compare(a.uid, b.uid))
	})
	if t.orders == nil {
		t.orders = map[string][]*row{}
	}
	t.orders[field] = rows
	return rows
}

// key is what a row is ordered by; zero for a field that it lacks.
func (r *row) key(field string) time.Time {
	switch field {
	case orderCreated:
		return r.created
	case orderUpdated:
		return r.updated
	case orderStart, orderEnd:
		if r.summary == nil {
			return time.Time{}
		}
		text := r.summary.StartTime
		if field == orderEnd {
			text = r.summary.EndTime
		}
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return time.Time{}
		}
		return t
	default:
		return time.Time{}
	}
}

// store is what is stored, and the texts of logs by parent, Result and UID.
type store struct {
	mu      sync.Mutex
	records map[string]*table // by parent, "-" for all, and by parent/result
	results map[string]*table // by parent, "-" for all
	logs    map[string][]byte
}

func newStore() store {
	return store{records: map[string]*table{}, results: map[string]*table{}, logs: map[string][]byte{}}
}

const anyName = "-"

func of(tables map[string]*table, name string) *table {
	t := tables[name]
	if t == nil {
		t = newTable()
		tables[name] = t
	}
	return t
}

// PutRecord stores a record, in the place of one of the same name.
func (s *Server) PutRecord(rec Record) error {
	if rec.Parent == "" || rec.Result == "" || rec.Name == "" {
		return errors.New("storing a record: its name lacks a part")
	}
	r := &row{
		parent: rec.Parent, result: rec.Result, name: rec.Name, uid: rec.UID, kind: rec.Type, etag: rec.Etag,
		created: rec.Created.UTC(), updated: rec.Updated.UTC(), base64: rec.Base64, index: indexed(rec.Value),
	}
	r.complete()
	r.value = pack(rec.Value)
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	key := r.fullName(kindRecords)
	for _, name := range r.tables() {
		of(s.store.records, name).put(key, r)
	}
	return nil
}

func (r *row) tables() []string { return []string{anyName, r.parent, r.parent + "/" + r.result} }

// PutResult stores a Result, in the place of one of the same name. Records do not
// need one, but for being found through it.
func (s *Server) PutResult(res Result) error {
	if res.Parent == "" || res.Name == "" {
		return errors.New("storing a Result: its name lacks a part")
	}
	r := &row{
		parent: res.Parent, result: res.Name, uid: res.UID, etag: res.Etag, created: res.Created.UTC(), updated: res.Updated.UTC(),
		annotations: res.Annotations, summary: res.Summary,
	}
	r.complete()
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	key := r.fullName(kindResults)
	of(s.store.results, anyName).put(key, r)
	of(s.store.results, r.parent).put(key, r)
	return nil
}

// DeleteRecord removes a record, as the retention job does.
func (s *Server) DeleteRecord(parent, result, name string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	r := &row{parent: parent, result: result, name: name}
	for _, name := range r.tables() {
		of(s.store.records, name).remove(r.fullName(kindRecords))
	}
}

// Drop removes all that is stored of a parent.
func (s *Server) Drop(parent string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	for _, tables := range []map[string]*table{s.store.records, s.store.results} {
		if t := tables[parent]; t != nil {
			for key := range t.byName {
				of(tables, anyName).remove(key)
			}
		}
		maps.DeleteFunc(tables, func(name string, _ *table) bool { return name == parent || strings.HasPrefix(name, parent+"/") })
	}
	maps.DeleteFunc(s.store.logs, func(name string, _ []byte) bool { return strings.HasPrefix(name, parent+"/") })
}

// PutLog stores the text of a log, which the name of its record or the UID of its
// TaskRun finds.
func (s *Server) PutLog(parent, result, name string, text []byte) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.logs[parent+"/"+result+"/"+name] = text
}
