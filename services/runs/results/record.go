package results

import (
	"encoding/base64"
	"encoding/json"
	jsonv2 "encoding/json/v2"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The types of [Record].
const (
	PipelineRun = "PipelineRun"
	TaskRun     = "TaskRun"
)

// Record is one archived object.
type Record struct {
	// Name is the record's full name: namespace/results/result/records/record.
	Name string
	// UID is that of the archived object. It is what tells a run from another of
	// the same name, and what the API calls a run's result.
	UID string
	// Type is PipelineRun or TaskRun, of v1 or of v1beta1.
	Type string
	// Created is when the object was made in its cluster.
	Created time.Time
	// Stored is when Results first stored the record: seconds after Created, or
	// days where its watcher was down. Zero when Results does not say.
	Stored time.Time
	// Value is the object's JSON as archived, checked to be JSON. It belongs to
	// whoever got the record.
	Value json.RawMessage
}

// Namespace is where the object was.
func (r Record) Namespace() string { namespace, _, _ := strings.Cut(r.Name, "/"); return namespace }

// Result is the name, within the namespace, of the Result that holds the record.
// It is the UID of a PipelineRun unless runs of one event share a Result.
func (r Record) Result() string {
	if parts := strings.Split(r.Name, "/"); len(parts) == 5 {
		return parts[2]
	}
	return ""
}

// recordName is that of a record; its segments are those that Results allows.
var recordName = regexp.MustCompile(`^([a-z0-9_-]{1,63})/results/[a-z0-9_-]{1,63}/records/[a-z0-9_-]{1,63}$`)

// wireRecord is a record as Results sends it.
type wireRecord struct {
	name, dataType string
	stored         time.Time // when Results stored it; zero when it does not say
	value          []byte    // the JSON string of the value, quotes included
	clipped        bool      // value is longer than what may be
}

// head is what a record is judged by.
type head struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace         string    `json:"namespace"`
		UID               string    `json:"uid"`
		CreationTimestamp time.Time `json:"creationTimestamp"`
	} `json:"metadata"`
}

// decode gives the record, of one of the types that were asked for and of the
// namespace, or an error that is ErrBadRecord.
func (w wireRecord) decode(namespace, kind string) (Record, error) {
	r := Record{Name: w.name, Type: kind, Stored: w.stored}
	parts := recordName.FindStringSubmatch(w.name)
	switch {
	case parts == nil:
		return Record{}, badRecord("", "its name is none")
	case namespace != anyNamespace && parts[1] != namespace:
		return Record{}, badRecord("", "it is of another namespace") // which is nobody's to know
	case w.dataType != "tekton.dev/v1."+kind && w.dataType != "tekton.dev/v1beta1."+kind:
		return r, badRecord(w.name, "it is of another type than asked for")
	case w.clipped:
		return r, badRecord(w.name, "its value is larger than what is read")
	}
	var err error
	if r.Value, err = unbase64(w.value); err != nil {
		return r, badRecord(w.name, "its value is not base64")
	}
	var h head
	if err := jsonv2.Unmarshal(r.Value, &h); err != nil { // its text quotes the value
		return r, badRecord(w.name, "its value is not the JSON of an object")
	}
	switch {
	case h.Kind != kind:
		return r, badRecord(w.name, "its value is of another kind than its type")
	case h.Metadata.Namespace != parts[1]:
		return r, badRecord(w.name, "its object is of another namespace")
	case h.Metadata.UID == "" || h.Metadata.CreationTimestamp.IsZero():
		return r, badRecord(w.name, "its object has no uid or no time of creation")
	}
	r.UID, r.Created = h.Metadata.UID, h.Metadata.CreationTimestamp.UTC()
	return r, nil
}

// unbase64 decodes a JSON string of either alphabet, with or without padding.
func unbase64(quoted []byte) ([]byte, error) {
	text, err := unquote(quoted)
	if err != nil {
		return nil, err
	}
	encoding := base64.RawStdEncoding
	for len(text) > 0 && text[len(text)-1] == '=' {
		text = text[:len(text)-1]
	}
	for _, c := range text {
		if c == '-' || c == '_' {
			encoding = base64.RawURLEncoding
			break
		}
	}
	value := make([]byte, encoding.DecodedLen(len(text)))
	n, err := encoding.Decode(value, text)
	if err != nil {
		return nil, fmt.Errorf("decoding base64: %w", err)
	}
	return value[:n], nil
}
