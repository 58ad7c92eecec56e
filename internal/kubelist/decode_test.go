package kubelist

import (
	"bytes"
	jsonv2 "encoding/json/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

var pipelineRuns = Kind{APIVersion: "tekton.dev/v1", Kind: "PipelineRun", Resource: "pipelineruns"}

// page makes a page of a list as the API server sends it.
func page(next string, items ...string) string {
	return `{"apiVersion":"tekton.dev/v1","items":[` + strings.Join(items, ",") +
		`],"kind":"PipelineRunList","metadata":{"continue":"` + next + `","resourceVersion":"7"}}` + "\n"
}

const (
	head = `{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","metadata":`
	meta = `"name":"a","namespace":"ns"`
)

// rule: R239
func TestAnObjectStaysAsTheClusterListsItButForManagedFields(t *testing.T) {
	for _, tc := range []struct{ name, sent, shown string }{
		{"nothing to change", head + `{` + meta + `},"spec":{"x":1}}`, ""},
		{"managedFields in between", head + `{"name":"a","managedFields":[{"f:x":{}}],"namespace":"ns"}}`, head + `{` + meta + `}}`},
		{"managedFields first", head + `{"managedFields":[],` + meta + `}}`, head + `{` + meta + `}}`},
		{"managedFields last", head + `{` + meta + `,"managedFields":null}}`, head + `{` + meta + `}}`},
		{"managedFields first, with space around", head + `{ "managedFields" : [1] , ` + meta + `}}`, head + `{ ` + meta + `}}`},
		{"managedFields last, with space around", head + `{` + meta + ` , "managedFields" : [1] }}`, head + `{` + meta + ` }}`},
		{"managedFields with an escape in its name", head + `{` + meta + `,"managed\u0046ields":[]}}`, head + `{` + meta + `}}`},
		{"managedFields anywhere else", head + `{` + meta + `},"managedFields":[1],"spec":{"metadata":{"managedFields":[2]}}}`, ""},
		{"a similar name", head + `{` + meta + `,"managedfields":[1]}}`, ""},
		{"no apiVersion and kind", `{"metadata":{` + meta + `}}`, head + `{` + meta + `}}`},
		{"no kind", `{"metadata":{` + meta + `},"apiVersion":"tekton.dev/v1"}`, `{"kind":"PipelineRun","metadata":{` + meta + `},"apiVersion":"tekton.dev/v1"}`},
		{"no apiVersion", `{"kind":"PipelineRun","metadata":{` + meta + `}}`, `{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","metadata":{` + meta + `}}`},
		{"all changes at once", `{"metadata":{"managedFields":[{}],` + meta + `},"spec":{}}`, head + `{` + meta + `},"spec":{}}`},
		{"numbers, escapes, space and order stay", `{ "spec":{"n":1.50e+02,"big":12345678901234567890,"s":"\u003c\/é\u2028"} ,` + head[1:] + `{` + meta + `}}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newList()
			next, err := pipelineRuns.decodePage(strings.NewReader(page("", tc.sent)), l)
			if err != nil || next != "" || l.Len() != 1 {
				t.Fatalf("%d objects, next %q, %v", l.Len(), next, err)
			}
			want := tc.shown
			if want == "" {
				want = tc.sent
			}
			if got := string(l.JSON(0)); got != want {
				t.Errorf("shown as\n%s\nwant\n%s", got, want)
			}
			if m := l.Meta(0); m.Namespace != "ns" || m.Name != "a" {
				t.Errorf("known as %+v", m)
			}
		})
	}
}

func TestWhatTellsObjectsApartIsRead(t *testing.T) {
	l := newList()
	item := head + `{"labels":{"name":"no","uid":"no"},"uid":"u","resourceVersion":"9",` + meta + `},"spec":{"name":"no"}}`
	if _, err := pipelineRuns.decodePage(strings.NewReader(page("", item)), l); err != nil {
		t.Fatal(err)
	}
	if got, want := l.Meta(0), (Meta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "9"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAPageIsReadWhereverItIsCut(t *testing.T) {
	sent := page("more", head+`{"managedFields":[],`+meta+`}}`, head+`{"name":"b","namespace":"ns"}}`)
	l := newList()
	next, err := pipelineRuns.decodePage(iotest.OneByteReader(strings.NewReader(sent)), l)
	if err != nil || next != "more" || l.Len() != 2 {
		t.Fatalf("%d objects, next %q, %v", l.Len(), next, err)
	}
	for i := range len(sent) - 1 { // the last byte is a line end
		if _, err := pipelineRuns.decodePage(strings.NewReader(sent[:i]), newList()); err == nil {
			t.Errorf("a page without its end counts as whole: %s", sent[:i])
		}
	}
}

func TestAnAnswerThatIsNoSuchListIsRefused(t *testing.T) {
	good := head + `{` + meta + `}}`
	for name, sent := range map[string]string{
		"nothing":                        "",
		"a page of HTML":                 "<html>502</html>",
		"null":                           "null",
		"an array":                       "[]",
		"an empty object":                "{}",
		"a Status":                       `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":500}`,
		"a list of another kind":         strings.Replace(page("", good), "PipelineRunList", "TaskRunList", 1),
		"a list of another version":      strings.Replace(page(""), "tekton.dev/v1", "tekton.dev/v2", 1),
		"a list without items":           `{"apiVersion":"tekton.dev/v1","kind":"PipelineRunList","metadata":{}}`,
		"items that are no array":        `{"apiVersion":"tekton.dev/v1","kind":"PipelineRunList","metadata":{},"items":{}}`,
		"metadata that is no object":     `{"apiVersion":"tekton.dev/v1","kind":"PipelineRunList","metadata":[],"items":[]}`,
		"a kind that is no string":       `{"apiVersion":"tekton.dev/v1","kind":1,"metadata":{},"items":[]}`,
		"two lists":                      page("") + page(""),
		"garbage behind the list":        page("") + "x",
		"an item that is null":           page("", "null"),
		"an item that is a string":       page("", `"a"`),
		"an item without metadata":       page("", `{"spec":{}}`),
		"an item with metadata of null":  page("", head+`null}`),
		"an item without a name":         page("", head+`{"namespace":"ns"}}`),
		"an item without a namespace":    page("", head+`{"name":"a"}}`),
		"an item whose name is a number": page("", head+`{"name":1,"namespace":"ns"}}`),
		"an item of another kind":        page("", strings.Replace(good, "PipelineRun", "Secret", 1)),
		"an item of another version":     page("", strings.Replace(good, "tekton.dev/v1", "tekton.dev/v1beta1", 1)),
		"an item with two names":         page("", head+`{"name":"b",`+meta+`}}`),
		"an item with two specs":         page("", strings.Replace(good, "{", `{"spec":{},"spec":{},`, 1)),
		"bytes that are not UTF-8":       page("", strings.Replace(good, `"a"`, "\"\xff\"", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			if next, err := pipelineRuns.decodePage(strings.NewReader(sent), newList()); err == nil || next != "" {
				t.Errorf("taken, next %q", next)
			}
		})
	}
}

func TestItemsOfNullAreNone(t *testing.T) {
	l := newList()
	sent := `{"kind":"PipelineRunList","apiVersion":"tekton.dev/v1","metadata":{"continue":null},"items":null}`
	if next, err := pipelineRuns.decodePage(strings.NewReader(sent), l); err != nil || next != "" || l.Len() != 0 {
		t.Errorf("%d objects, next %q, %v", l.Len(), next, err)
	}
}

// FuzzDecodePage compares with what the standard library makes of the same bytes.
func FuzzDecodePage(f *testing.F) {
	for _, seed := range []string{
		page("", head+`{"managedFields":[{"a":1}],`+meta+`}}`),
		page("n", head+`{`+meta+`,"managedFields":[]},"spec":{"a":[1e5,"\u0000"]}}`, `{"metadata":{`+meta+`}}`),
		`{"items":null,"kind":"PipelineRunList","apiVersion":"tekton.dev/v1"}`,
		`{"metadata":{"managedFields":1 , "name":"x","namespace":"y"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		l := newList()
		next, err := pipelineRuns.decodePage(bytes.NewReader(sent), l)
		if err != nil {
			return
		}
		var plain struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []map[string]any `json:"items"`
		}
		if err := jsonv2.Unmarshal(sent, &plain); err != nil {
			t.Skip(err) // a number that no float64 holds
		}
		if len(plain.Items) != l.Len() || next != plain.Metadata.Continue {
			t.Fatalf("%d objects and next %q, want %d and %q", l.Len(), next, len(plain.Items), plain.Metadata.Continue)
		}
		for i, want := range plain.Items {
			metadata, ok := want["metadata"].(map[string]any)
			if !ok {
				t.Fatalf("object %d was taken without metadata", i)
			}
			delete(metadata, "managedFields")
			want["apiVersion"], want["kind"] = pipelineRuns.APIVersion, pipelineRuns.Kind
			var got map[string]any
			if err := jsonv2.Unmarshal(l.JSON(i), &got); err != nil {
				t.Fatalf("object %d is shown as %s: %v", i, l.JSON(i), err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("object %d is shown as %v, want %v", i, got, want)
			}
		}
	})
}
