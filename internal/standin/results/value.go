package results

import (
	"crypto/md5" //nolint:gosec // UUIDs of version 3, no secret
	jsonv2 "encoding/json/v2"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/s2"
)

// packed is a value as it is kept: history is large and much alike.
type packed struct {
	bytes []byte
	plain bool
}

const packFrom = 512

func pack(value []byte) packed {
	if len(value) < packFrom {
		return packed{slices.Clone(value), true}
	}
	return packed{bytes: slices.Clip(slices.Clone(s2.EncodeBetter(nil, value)))} // without the room that encoding took
}

func (p packed) unpack() []byte {
	if p.plain {
		return p.bytes
	}
	value, err := s2.Decode(nil, p.bytes)
	if err != nil {
		return nil // pack made it
	}
	return value
}

// index is what filters ask for most, so that a list does not decode every value.
type index struct {
	Metadata struct {
		Name              *string           `json:"name"`
		Namespace         *string           `json:"namespace"`
		UID               *string           `json:"uid"`
		CreationTimestamp *string           `json:"creationTimestamp"`
		Labels            map[string]string `json:"labels"`
	} `json:"metadata"`
	Status struct {
		StartTime      *string `json:"startTime"`
		CompletionTime *string `json:"completionTime"`
		Conditions     []struct {
			Reason *string `json:"reason"`
			Status *string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`

	usable bool // false: the value is not of this shape, so it is decoded when asked
}

func indexed(value []byte) (i index) {
	i.usable = jsonv2.Unmarshal(value, &i) == nil
	return i
}

// find gives the text at a path, when the index has it.
func (i *index) find(path []string) (text *string, known bool) {
	if !i.usable {
		return nil, false
	}
	switch strings.Join(path, "\x00") {
	case "metadata\x00name":
		return i.Metadata.Name, true
	case "metadata\x00namespace":
		return i.Metadata.Namespace, true
	case "metadata\x00uid":
		return i.Metadata.UID, true
	case "metadata\x00creationTimestamp":
		return i.Metadata.CreationTimestamp, true
	case "status\x00startTime":
		return i.Status.StartTime, true
	case "status\x00completionTime":
		return i.Status.CompletionTime, true
	}
	switch {
	case len(path) == 3 && path[0] == "metadata" && path[1] == "labels":
		if label, ok := i.Metadata.Labels[path[2]]; ok {
			return &label, true
		}
		return nil, true
	case len(path) == 4 && path[0] == "status" && path[1] == "conditions":
		return i.condition(path[2], path[3])
	}
	return nil, false
}

func (i *index) condition(at, field string) (text *string, known bool) {
	n, err := strconv.Atoi(at)
	if err != nil || n < 0 || (field != "reason" && field != "status") {
		return nil, false
	}
	if n >= len(i.Status.Conditions) {
		return nil, true
	}
	if field == "reason" {
		return i.Status.Conditions[n].Reason, true
	}
	return i.Status.Conditions[n].Status, true
}

// decoded is a value decoded once for all the filters of a request.
type decoded struct {
	row  *row
	once sync.Once
	tree any
}

// text gives what PostgreSQL's ->> gives at a path: the text of a scalar, the JSON
// of anything else, nothing for null and for what is not there.
func (d *decoded) text(path []string) *string {
	if text, known := d.row.index.find(path); known {
		return text
	}
	d.once.Do(func() {
		if jsonv2.Unmarshal(d.row.value.unpack(), &d.tree) != nil {
			d.tree = nil
		}
	})
	at := d.tree
	for _, step := range path {
		switch node := at.(type) {
		case map[string]any:
			at = node[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(node) {
				return nil
			}
			at = node[n]
		default:
			return nil
		}
	}
	return jsonText(at)
}

func jsonText(v any) *string {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return &v
	default:
		raw, err := jsonv2.Marshal(v)
		if err != nil {
			return nil
		}
		text := string(raw)
		return &text
	}
}

// complete fills in what a row lacks.
func (r *row) complete() {
	if r.uid == "" {
		r.uid = uuid.NewSHA1(uuid.NameSpaceURL, []byte(r.fullName("records"))).String()
	}
	if r.updated.IsZero() {
		r.updated = r.created
	}
	r.created, r.updated = r.created.Truncate(time.Microsecond), r.updated.Truncate(time.Microsecond)
	if r.etag == "" {
		r.etag = fmt.Sprintf("%s-%d", r.uid, r.updated.UnixNano())
	}
}

// logName is the name of an object's Log record.
func logName(resultUID, objectUID string) string {
	space, err := uuid.Parse(resultUID)
	if err != nil {
		space = uuid.Nil
	}
	return uuid.NewHash(md5.New(), space, []byte(objectUID), 3).String() //nolint:gosec // as above
}
