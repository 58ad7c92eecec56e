package results

import (
	"bytes"
	"encoding/base64"
	"encoding/json/jsontext"
	"errors"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const fuzzNamespace = "app-shop-cicd"

// seedPage is a page as servers send it.
func seedPage(value string) string {
	name := fuzzNamespace + "/results/r-1/records/r-1"
	return `{"records":[{"name":"` + name + `","create_time":"2026-11-20T12:00:02.118230Z","data":{"type":"tekton.dev/v1.PipelineRun","value":"` +
		base64.StdEncoding.EncodeToString([]byte(value)) + `"}}],"next_page_token":"CgEt"}`
}

const seedValue = `{"kind":"PipelineRun","metadata":{"namespace":"app-shop-cicd","uid":"r-1","creationTimestamp":"2026-11-20T12:00:00Z"}}`

// Whatever a server sends, a page is read whole or not at all, what is taken from
// it is of the namespace, and reading it byte by byte gives the same.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		seedPage(seedValue), seedPage("{"), seedPage(strings.Repeat(" ", 500) + seedValue), "{}", `{"records":null}`, `{"records":[null,{}]}`, `{"records":[],"nextPageToken":""}`,
		`{"code":13}`, "", `{"records":[{"name":1}]}`, strings.Replace(seedPage(seedValue), "=", `\u003d`, 1), seedPage(seedValue)[:200], seedPage(seedValue) + "x",
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{RecordBytes: 300, PageBytes: 4000}.withDefaults()
	f.Fuzz(func(t *testing.T, raw []byte) {
		read := func(r io.Reader) (names []string, next string, err error) {
			p, err := readPage(r, limits, func(w wireRecord) error {
				if len(w.value) > 400+len(`""`)+6 {
					t.Errorf("a value of %d bytes is held", len(w.value))
				}
				rec, err := w.decode(fuzzNamespace, PipelineRun)
				switch {
				case err != nil && !errors.Is(err, ErrBadRecord):
					t.Errorf("got %v", err)
				case err == nil && (rec.Namespace() != fuzzNamespace || rec.UID == "" || rec.Created.IsZero() || !jsontext.Value(rec.Value).IsValid()):
					t.Errorf("took %+v", rec)
				}
				names = append(names, rec.Name+rec.UID)
				return nil
			})
			if err != nil {
				return names, "", err
			}
			return names, p.next, nil
		}
		names, next, err := read(bytes.NewReader(raw))
		slow, slowNext, slowErr := read(iotest.OneByteReader(bytes.NewReader(raw)))
		if strings.Join(names, " ") != strings.Join(slow, " ") || next != slowNext || (err == nil) != (slowErr == nil) {
			t.Errorf("at once %v %q %v, byte by byte %v %q %v", names, next, err, slow, slowNext, slowErr)
		}
	})
}

// What is valid JSON stays so, with the same shape, and no string, number or white
// space longer than may be; what has none that long is not changed.
func FuzzClip(f *testing.F) {
	for _, seed := range []string{
		`{"a":"0123456789abcdef","b":["x",1,null]}`, `"\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"`, `"\"\\\"\\\"\\\"\\\"\\"`, `{"0123456789":"é"}`, `"`, `"\`, `"\u`, `""`, `[1234567890123,-1.234567e+123,0.0000000000001,12345678e9]`, `{            "a"            :            1            }`, `[0.12345e+678,-12345678]`,
	} {
		f.Add([]byte(seed), 8)
	}
	f.Fuzz(func(t *testing.T, raw []byte, most int) {
		if most < 1 || most > 100 {
			return
		}
		got, err := io.ReadAll(&clip{r: iotest.HalfReader(bytes.NewReader(raw)), most: most, left: int64(len(raw))})
		if err != nil {
			t.Fatal(err)
		}
		valid := func(b []byte) bool {
			return jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		}
		if !valid(raw) {
			return
		}
		if !valid(got) {
			t.Fatalf("%q became %q", raw, got)
		}
		long := regexp.MustCompile(`"(?s:\\.|[^"\\])*"|[-+.eE0-9]+|[ \t\r\n]+`)
		longest := 0
		for _, s := range long.FindAll(raw, -1) {
			longest = max(longest, len(s))
		}
		if longest <= most && !bytes.Equal(raw, got) {
			t.Errorf("%q became %q", raw, got)
		}
		for _, s := range long.FindAll(got, -1) {
			if len(s)-2 > most+5 {
				t.Errorf("%q is left of %q", s, raw)
			}
		}
	})
}

// endless gives so many bytes of a text, over and over.
func endless(text string, n int64) io.Reader { return io.LimitReader(&repeat{text: text}, n) }

type repeat struct {
	text string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(p), nil
}

// However large a part of a page is, little of it is held: a page of hundreds of
// megabytes comes in turns, and no turn counts how large it is.
//
//nolint:paralleltest // it counts what the process allocates
func TestNothingOfAPageIsHeldWhole(t *testing.T) {
	const size = 1 << 20
	limits := Limits{RecordBytes: 1 << 10, PageBytes: 256 << 20}.withDefaults()
	for name, tt := range map[string]struct{ before, endless, after string }{
		"a value that is a list of numbers": {`"data":{"value":[1`, ",1", `]}`},
		"a value that is a list of texts":   {`"data":{"value":["x"`, `,"x"`, `]}`},
		"a value that is an object":         {`"data":{"value":{"x":1`, `,"x":2`, `}}`},
		"a value that is a text":            {`"data":{"value":"`, "x", `"}`},
		"a value that is a number":          {`"data":{"value":1`, "1", `}`},
		"a fraction":                        {`"data":{"value":0.1`, "1", `}`},
		"white space":                       {`"data":{"value":`, " ", `1}`},
		"something that nobody asked for":   {`"x":[1`, ",1", `]`},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			whole := int64(size / len(tt.endless) * len(tt.endless))
			body := io.MultiReader(strings.NewReader(`{"records":[{`+tt.before), endless(tt.endless, whole), strings.NewReader(tt.after+`},`+seedPage(seedValue)[len(`{"records":[`):]))
			var good, bad int
			_, err := readPage(body, limits, func(w wireRecord) error {
				if _, err := w.decode(fuzzNamespace, PipelineRun); err != nil {
					bad++
				} else {
					good++
				}
				return nil
			})
			if err != nil || good != 1 || bad != 1 {
				t.Errorf("%d good records and %d bad ones, %v", good, bad, err)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > size/4 {
				t.Errorf("it took %d KiB", took>>10)
			}
		})
	}
}

// A log is passed on byte by byte, or fails: it never changes and never ends early.
func FuzzLog(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "one\ntwo", `{"error":{"code":5,"message":"x"}}`, "a\n" + `{"error":{"code":5,"message":"x"}}` + "\n", `{"error":`, strings.Repeat("x", 9000), "\x00\xff",
		strings.Repeat("{\"error\":\n", 3),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		resp := &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.HalfReader(bytes.NewReader(raw)))}
		log, err := openLog(resp, 1<<20)
		switch {
		case len(raw) == 0:
			if !errors.Is(err, ErrNoLog) {
				t.Errorf("got %v", err)
			}
			return
		case err != nil:
			if _, ok := errors.AsType[*Error](err); !ok || !bytes.HasPrefix(raw, []byte(errorLine)) {
				t.Errorf("got %v", err)
			}
			return
		}
		got, err := io.ReadAll(iotest.OneByteReader(log))
		if err == nil && !bytes.Equal(got, raw) || err != nil && !bytes.Contains(raw, []byte(errorLine)) {
			t.Errorf("%q became %q, %v", raw, got, err)
		}
	})
}

// No value gets out of its quotes.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{"abc", `a" || "" == "`, "a' OR 1=1 --", "a\\", "", "\u2019", "a\nb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, err := oneOf("data.metadata.uid", value, "y")
		if err != nil {
			return
		}
		if strings.ContainsAny(value, "'\"\\% \n") || string(got) != `data.metadata.uid in ["`+value+`","y"]` {
			t.Errorf("%q gives %s", value, got)
		}
	})
}

func TestFilters(t *testing.T) {
	t.Parallel()
	byUID, err := oneOf("data.metadata.uid", "x-1", "x-2")
	if err != nil {
		t.Fatal(err)
	}
	got := all(of(TaskRun), "", since(time.Date(2026, 11, 20, 13, 0, 0, 5, time.FixedZone("", 3600))), byUID)
	const want = `data_type in ["tekton.dev/v1.TaskRun","tekton.dev/v1beta1.TaskRun"] && ` +
		`data.metadata.creationTimestamp >= "2026-11-20T12:00:00Z" && data.metadata.uid in ["x-1","x-2"]`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
}
