package answer_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hangar.io/glidepath/internal/answer"
)

// store writes a body in pieces of some size.
func store(t testing.TB, text string, piece int) *answer.Stored {
	t.Helper()
	w := answer.NewWriter(answer.JSON, 1<<30)
	for len(text) > 0 {
		n := min(piece, len(text))
		if _, err := io.WriteString(w, text[:n]); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	s, err := w.Stored()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// askStored gives the answer to a request that takes an encoding and has a tag.
func askStored(s *answer.Stored, plains *answer.Plains, accept, tag string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", accept)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	w := httptest.NewRecorder()
	if err := s.For(r, plains).Write(w); err != nil {
		w.Code = 0 // nobody takes it for an answer
	}
	return w.Result()
}

func noise(n int) string {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(b) // never fails
	return string(b)
}

// bodies are all that differ in how they are kept.
var bodies = map[string]string{
	"none":                       "",
	"a short one":                `{"runs":[]}`,
	"one that is compressed":     body,
	"a large one":                strings.Repeat(noise(300)+body, 300),
	"one that does not compress": noise(70 << 10),
}

// rule: R290
func TestAStoredAnswerDescribesTheBytesItSends(t *testing.T) {
	for name, text := range bodies {
		t.Run(name, func(t *testing.T) {
			kept := store(t, text, 1000)
			if kept.Len() != len(text) {
				t.Errorf("its length is %d, want %d", kept.Len(), len(text))
			}
			plains, err := answer.NewPlains(16 << 20)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := answer.Codec{}.Encode(kept)
			if err != nil {
				t.Fatal(err)
			}
			again, err := answer.Codec{}.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			tags := map[string]string{} // by encoding
			for name, s := range map[string]*answer.Stored{"as written": kept, "cut in other ways": store(t, text, 7777), "from the cache": again} {
				for _, accept := range []string{"", "gzip"} {
					for _, p := range []*answer.Plains{nil, plains, plains} {
						tag := checkSent(t, askStored(s, p, accept, ""), text)
						if known := tags[accept]; known != "" && known != tag {
							t.Errorf("%s: the tag is %s and was %s", name, tag, known)
						}
						tags[accept] = tag
						if r := askStored(s, p, accept, tag); r.StatusCode != http.StatusNotModified || len(read(t, r)) > 0 {
							t.Errorf("%s: a caller who has it gets %d", name, r.StatusCode)
						}
					}
				}
				opened, err := s.Open()
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(opened); err != nil || string(got) != text {
					t.Errorf("%s: opened it gives %d bytes, %v", name, len(got), err)
				}
				if err := opened.Close(); err != nil {
					t.Error(err)
				}
			}
			// Answer and Stored have one idea of a body's tag.
			if want := ask(answer.New([]byte(text))).Header.Get("ETag"); tags[""] != want {
				t.Errorf("the tag is %s, want %s", tags[""], want)
			}
		})
	}
}

// checkSent checks an answer against the body and gives its tag.
func checkSent(t *testing.T, r *http.Response, text string) (tag string) {
	t.Helper()
	sent := read(t, r)
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Length") != strconv.Itoa(len(sent)) {
		t.Errorf("status %d, Content-Length %q for %d bytes", r.StatusCode, r.Header.Get("Content-Length"), len(sent))
	}
	for name, want := range map[string]string{"Content-Type": answer.JSON, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"} {
		if got := r.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	got := string(sent)
	if r.Header.Get("Content-Encoding") == "gzip" {
		got = unzip(t, sent)
	}
	if got != text {
		t.Errorf("%d bytes are sent of %d, or others", len(got), len(text))
	}
	return r.Header.Get("ETag")
}

func TestACompressedFormIsKeptAndSentWhereItIsTaken(t *testing.T) {
	s := store(t, body, 100)
	if s.Size() > len(body)/4 {
		t.Errorf("%d bytes are kept of %d", s.Size(), len(body))
	}
	plain, zipped := askStored(s, nil, "", ""), askStored(s, nil, "gzip", "")
	if plain.Header.Get("Content-Encoding") != "" || zipped.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("the encodings are %q and %q", plain.Header.Get("Content-Encoding"), zipped.Header.Get("Content-Encoding"))
	}
	if plain.Header.Get("ETag") == zipped.Header.Get("ETag") {
		t.Error("two forms have one tag")
	}
	if r := askStored(store(t, noise(70<<10), 100), nil, "gzip", ""); r.Header.Get("Content-Encoding") != "" {
		t.Error("what compression does not shorten is sent compressed")
	}
}

func TestAWriterTakesNoMoreThanItMay(t *testing.T) {
	w := answer.NewWriter("text/plain", 5000)
	if _, err := io.WriteString(w, strings.Repeat("a", 5000)); err != nil {
		t.Fatal(err)
	}
	if w.Len() != 5000 {
		t.Errorf("its length is %d", w.Len())
	}
	if _, err := io.WriteString(w, "a"); !errors.Is(err, answer.ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
	// What failed once gives no answer that looks whole.
	if s, err := w.Stored(); s != nil || !errors.Is(err, answer.ErrTooLarge) {
		t.Errorf("it gives %v, %v", s, err)
	}
	w = answer.NewWriter("text/plain", 5000)
	if _, err := w.Stored(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "a"); err == nil {
		t.Error("a body goes on after its end")
	}
}

// TestAWriterNeverHoldsTheBody: what a long body takes while it is written is
// its compressed form and a window.
func TestAWriterNeverHoldsTheBody(t *testing.T) {
	const pieces, most = 600, 8 << 20
	piece := []byte(strings.Repeat(body, 16)) // 100 KB
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, peak := heap(), uint64(0)
	w := answer.NewWriter(answer.JSON, 1<<30)
	for i := range pieces {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
		if i%100 == 99 {
			peak = max(peak, heap())
		}
	}
	s, err := w.Stored()
	if err != nil {
		t.Fatal(err)
	}
	if grown := max(peak, heap()) - before; grown > most {
		t.Errorf("%d bytes for a body of %d", grown, s.Len())
	}
}

func TestAPlainBodyIsUncompressedOnce(t *testing.T) {
	plains, err := answer.NewPlains(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	s, large := store(t, body, 1000), store(t, strings.Repeat(body, 100), 1000)
	get := func(s *answer.Stored, plains *answer.Plains) func() {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		return func() { _ = s.For(r, plains).Write(&discard{h: http.Header{}}) }
	}
	get(s, plains)()
	kept, not := bytesPerRun(get(s, plains)), bytesPerRun(get(s, nil))
	if kept > 2<<10 {
		t.Errorf("a body that is kept takes %d bytes to send", kept)
	}
	// A body of more than a quarter of what is kept would push all others
	// out. It is sent on as it is uncompressed.
	if took := bytesPerRun(get(large, plains)); took > uint64(large.Len())/4 || not > uint64(large.Len())/4 {
		t.Errorf("a large body takes %d bytes to send", took)
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			text := strings.Repeat(body, 1+i%30) + strconv.Itoa(i%40)
			if got := read(t, askStored(store(t, text, 1000), plains, "", "")); string(got) != text {
				t.Errorf("%d bytes are sent of %d, or others", len(got), len(text))
			}
		})
	}
	all.Wait()
}

// discard is an answer that goes nowhere.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { clear(d.h); return d.h }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// bytesPerRun gives how much one call of f allocates.
func bytesPerRun(f func()) uint64 {
	const runs = 20
	f()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs
}

func TestWhatIsNoStoredAnswerDoesNotDecode(t *testing.T) {
	raw, err := answer.Codec{}.Encode(store(t, body, 1000))
	if err != nil {
		t.Fatal(err)
	}
	short, err := answer.Codec{}.Encode(store(t, "short", 1000))
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{
		"nothing":                     nil,
		"something else":              []byte("something else"),
		"another form":                bytes.Replace(raw, []byte("answer1"), []byte("answer2"), 1),
		"its start":                   raw[:20],
		"another encoding":            bytes.Replace(raw, []byte("\x04gzip"), []byte("\x04zstd"), 1),
		"a short body without an end": short[:len(short)-1],
		"a short body with more":      append(bytes.Clone(short), 'x'),
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := (answer.Codec{}).Decode(raw); err == nil {
				t.Errorf("it is read as %v", s)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range bodies {
		raw, err := answer.Codec{}.Encode(store(f, text, 1000))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := answer.Codec{}.Decode(raw)
		if err != nil {
			return
		}
		again, err := answer.Codec{}.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (answer.Codec{}).Decode(again); err != nil {
			t.Fatalf("%q is read and then written as %q: %v", raw, again, err)
		}
		// Whatever is in it, it is sent or cut, in no more than it says.
		got := read(t, askStored(s, nil, "", ""))
		if len(got) > s.Len() {
			t.Fatalf("%d bytes of %d", len(got), s.Len())
		}
	})
}

func TestWhatAFormHolds(t *testing.T) {
	plains, err := answer.NewPlains(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	small, other, large := store(t, body, 1000), store(t, body+" ", 1000), store(t, strings.Repeat(body, 200), 1000)
	form := func(s *answer.Stored, accept, tag string) *answer.Form {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", accept)
		r.Header.Set("If-None-Match", tag)
		return s.For(r, plains)
	}
	for name, tc := range map[string]struct {
		form, same, not *answer.Form
		least           int
	}{
		"compressed":           {form(small, "gzip", ""), form(small, "gzip", ""), form(other, "gzip", ""), small.Size() - 256},
		"uncompressed":         {form(small, "", ""), form(small, "", ""), form(small, "gzip", ""), small.Len()},
		"uncompressed by bits": {form(large, "", ""), form(large, "gzip", ""), form(small, "gzip", ""), large.Size() - 256},
	} {
		key, n := tc.form.Held()
		if same, _ := tc.same.Held(); key == nil || same != key || n < tc.least || n > tc.least+small.Size() {
			t.Errorf("%s: %d bytes, of the same key: %v", name, n, same == key)
		}
		if not, _ := tc.not.Held(); not == key {
			t.Errorf("%s: another has its key", name)
		}
	}
	if _, n := form(small, "", "*").Held(); n != 0 {
		t.Errorf("without a body %d bytes", n)
	}
}
