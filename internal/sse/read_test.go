package sse_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/iotest"

	"hangar.io/glidepath/internal/sse"
)

// seen is what a reader made of a stream.
type seen struct {
	Events []event  `json:"events"`
	Retry  *float64 `json:"retry_ms"`
	LastID string   `json:"last_event_id_for_reconnect"`
	// Comments are those of the whole stream.
	Comments []string `json:"comments"`
}

type event struct {
	Type   string `json:"type"`
	Data   string `json:"data"`
	LastID string `json:"lastEventId"`
}

func read(t *testing.T, from io.Reader) seen {
	t.Helper()
	s := seen{Events: []event{}, Comments: []string{}}
	r := sse.NewReader(from, 1<<20)
	r.OnComment = func(text string) { s.Comments = append(s.Comments, text) }
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		s.Events = append(s.Events, event{Type: e.Type, Data: string(e.Data), LastID: e.ID})
	}
	s.LastID = r.LastID()
	if r.Retry() > 0 {
		ms := float64(r.Retry().Milliseconds())
		s.Retry = &ms
	}
	return s
}

// cases reads a file of shared cases, or skips the test.
func cases(t *testing.T, file string, into any) {
	t.Helper()
	dir := os.Getenv("GLIDEPATH_CASES")
	if dir == "" {
		t.Skip("GLIDEPATH_CASES names no folder of cases")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "sse", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func TestStreamsAreReadAsTheStandardHasIt(t *testing.T) {
	var vectors []struct {
		Name   string
		Chunks []string
		Base64 []string `json:"chunks_base64"`
		Expect seen     `json:"expected"`
	}
	cases(t, "parser-vectors.json", &vectors)
	if len(vectors) == 0 {
		t.Fatal("there are no cases")
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			const day = 24 * 60 * 60 * 1000 // nobody is made to wait longer
			if v.Expect.Retry != nil {
				*v.Expect.Retry = min(*v.Expect.Retry, day)
			}
			var all []byte
			for _, c := range v.Chunks {
				all = append(all, c...)
			}
			for _, c := range v.Base64 {
				raw, err := base64.StdEncoding.DecodeString(c)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, raw...)
			}
			for name, from := range map[string]io.Reader{"at once": bytes.NewReader(all), "byte by byte": iotest.OneByteReader(bytes.NewReader(all))} {
				if got := read(t, from); !reflect.DeepEqual(got, v.Expect) {
					gotText, _ := json.Marshal(got)
					wantText, _ := json.Marshal(v.Expect)
					t.Errorf("%s:\n%s\nwant\n%s", name, gotText, wantText)
				}
			}
		})
	}
}

func TestWhatIsWrittenIsReadBackOrRefused(t *testing.T) {
	var vectors []struct {
		Event struct{ Data, Type, ID string }
		Rule  string
	}
	cases(t, "encoder-vectors.json", &vectors)
	if len(vectors) == 0 {
		t.Fatal("there are no cases")
	}
	for _, v := range vectors {
		t.Run(v.Rule, func(t *testing.T) {
			roundTrip(t, sse.Event{ID: v.Event.ID, Type: v.Event.Type, Data: []byte(v.Event.Data)})
		})
	}
}
