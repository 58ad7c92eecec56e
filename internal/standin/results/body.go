package results

import (
	"encoding/base64"
	"time"
)

// dataJSON is what a record holds.
type dataJSON struct {
	Type  string `json:"type,omitempty"`
	Value string `json:"value,omitempty"`
}

// itemJSON is a Record or a Result as it is sent. Twins of older names are sent
// too.
type itemJSON struct {
	Name        string            `json:"name,omitempty"`
	ID          string            `json:"id,omitempty"`
	UID         string            `json:"uid,omitempty"`
	Data        *dataJSON         `json:"data,omitempty"`
	CreatedTime string            `json:"created_time,omitempty"`
	CreateTime  string            `json:"create_time,omitempty"`
	UpdatedTime string            `json:"updated_time,omitempty"`
	UpdateTime  string            `json:"update_time,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Etag        string            `json:"etag,omitempty"`
	Summary     *Summary          `json:"summary,omitempty"`
}

// oldItemJSON is itemJSON as releases before v0.15 wrote it.
type oldItemJSON struct {
	Name        string            `json:"name"`
	ID          string            `json:"id"`
	UID         string            `json:"uid"`
	Data        *dataJSON         `json:"data,omitempty"`
	CreatedTime string            `json:"createdTime"`
	CreateTime  string            `json:"createTime"`
	UpdatedTime string            `json:"updatedTime"`
	UpdateTime  string            `json:"updateTime"`
	Annotations map[string]string `json:"annotations"`
	Etag        string            `json:"etag"`
	Summary     *Summary          `json:"summary"`
}

// dialect gives an item in the spelling of this server.
func (s *Server) dialect(i itemJSON) any {
	if s.cfg.OldDialect {
		return oldItemJSON(i)
	}
	return i
}

func (r *row) itemJSON(kind string) itemJSON {
	created, updated := stamp(r.created), stamp(r.updated)
	return itemJSON{
		Name: r.fullName(kind), ID: r.uid, UID: r.uid, Etag: r.etag,
		CreatedTime: created, CreateTime: created, UpdatedTime: updated, UpdateTime: updated,
		Annotations: r.annotations, Summary: r.summary,
	}
}

func (r *row) resultJSON() itemJSON { return r.itemJSON(kindResults) }

// recordJSON is a record, or what a selection leaves of it.
func (r *row) recordJSON(kind string, only *selection) itemJSON {
	item := r.itemJSON(kind)
	if !only.has("data") {
		return only.cut(item)
	}
	item.Data = &dataJSON{Type: r.kind, Value: r.base64}
	if r.base64 == "" && only.has("data", "value") {
		item.Data.Value = base64.StdEncoding.EncodeToString(only.cutValue(r.value.unpack()))
	}
	return only.cut(item)
}

// stamp writes a time with as many digits as the real server: none, three, six or
// nine.
func stamp(t time.Time) string {
	switch {
	case t.Nanosecond() == 0:
		return t.Format("2006-01-02T15:04:05Z")
	case t.Nanosecond()%1e6 == 0:
		return t.Format("2006-01-02T15:04:05.000Z")
	case t.Nanosecond()%1e3 == 0:
		return t.Format("2006-01-02T15:04:05.000000Z")
	default:
		return t.Format("2006-01-02T15:04:05.000000000Z")
	}
}
