package sse_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hangar.io/glidepath/internal/sse"
)

// roundTrip writes an event and wants it back alone, unless it is refused,
// which only a line end or a NUL in its id or type is a reason for.
func roundTrip(t *testing.T, e sse.Event) {
	t.Helper()
	frame, err := e.Append(nil)
	if bad := strings.ContainsAny(e.ID+e.Type, "\r\n\x00"); bad != (err != nil) {
		t.Fatalf("%q: %v", e, err)
	}
	if err != nil {
		return
	}
	data := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(e.Data))
	kind := e.Type
	if kind == "" {
		kind = "message"
	}
	got := read(t, bytes.NewReader(frame))
	if len(got.Events) != 1 || got.Events[0] != (event{Type: kind, Data: data, LastID: e.ID}) || got.Retry != nil || len(got.Comments) > 0 {
		t.Fatalf("%q is read as %+v", frame, got)
	}
}

func TestAnEventIsWrittenAsItIsReadBack(t *testing.T) {
	for name, e := range map[string]sse.Event{
		"one line":                 {ID: "1", Type: "change", Data: []byte(`{"a":1}`)},
		"no id and no type":        {Data: []byte("x")},
		"no data":                  {ID: "2", Type: "end"},
		"lines of every kind":      {Data: []byte("a\nb\rc\r\nd\n\n")},
		"fields within the data":   {Data: []byte("x\n\nevent: forged\nid: 9\nretry: 1\n: note")},
		"leading space":            {Data: []byte("  x")},
		"a line end in the id":     {ID: "1\n2"},
		"a return in the type":     {Type: "a\rb"},
		"a NUL in the id":          {ID: "a\x00"},
		"more than a chunk":        {Data: bytes.Repeat([]byte("x"), 200<<10)},
		"a colon in id and type":   {ID: "a:b", Type: "c:d", Data: []byte(":")},
		"characters of many bytes": {ID: "é", Type: "→", Data: []byte("\u2028\u0085𝄞")},
	} {
		t.Run(name, func(t *testing.T) { roundTrip(t, e) })
	}
}

func TestCommentsAndRetriesAreNoEvents(t *testing.T) {
	frames := append(sse.Comment("lag\nged\rhere"), sse.Retry(1500*time.Millisecond)...)
	frames = append(append(frames, sse.AppendID(nil, "7")...), '\n')
	got := read(t, bytes.NewReader(frames))
	if len(got.Events) != 0 || len(got.Comments) != 1 || got.Comments[0] != " lag ged here" || got.Retry == nil || *got.Retry != 1500 || got.LastID != "7" {
		t.Errorf("read as %+v", got)
	}
}

// FuzzEvent writes any event and reads it back.
func FuzzEvent(f *testing.F) {
	f.Add("1", "change", "a\r\n\rb")
	f.Add("", "", "\nid: 3\n\n")
	f.Add("\x00", "\r", "")
	f.Fuzz(func(t *testing.T, id, kind, data string) {
		if !utf8.ValidString(id + kind + data) {
			t.Skip("what is sent is UTF-8")
		}
		roundTrip(t, sse.Event{ID: id, Type: kind, Data: []byte(data)})
	})
}
