package view

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"time"
)

// viewer is one of the crowd. A Watch has it read by several goroutines.
type viewer struct {
	crowd   *crowd
	base    string
	begun   int64
	id      string
	arrived []atomic.Int64
	doubled atomic.Int64
}

var mark = []byte(`"` + Annotation + `":"`)

// changes gives the numbers of the changes that JSON tells of.
func changes(json []byte, each func(n int)) {
	for {
		at := bytes.Index(json, mark)
		if at < 0 {
			return
		}
		json = json[at+len(mark):]
		end := bytes.IndexByte(json, '"')
		if end < 0 {
			return
		}
		if n, err := strconv.Atoi(string(json[:end])); err == nil {
			each(n)
		}
	}
}

// told notes what an event says.
func (v *viewer) told(json []byte) {
	now := time.Now().UnixNano()
	changes(json, func(n int) {
		if i := n - v.crowd.spec.From; i >= 0 && i < len(v.arrived) && !v.note(i, now) {
			v.doubled.Add(1)
		}
	})
}

// shown notes what a list says: an object that was changed again meanwhile shows the last change, which stands for those
// before it.
func (v *viewer) shown(json []byte) {
	now := time.Now().UnixNano()
	changes(json, func(n int) {
		for i := n - v.crowd.spec.From; i >= 0 && i < len(v.arrived) && v.note(i, now); i -= v.crowd.spec.Objects {
		}
	})
}

// note says whether the viewer sees a change for the first time.
func (v *viewer) note(i int, at int64) bool {
	if !v.arrived[i].CompareAndSwap(0, at) {
		return false
	}
	if v.crowd.left.Add(-1) == 0 {
		close(v.crowd.all)
	}
	return true
}
