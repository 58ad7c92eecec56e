package answer_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/answer"
)

// body is long enough to be compressed.
var body = `{"items":[` + strings.Repeat(`{"name":"a"},`, 500) + `{}]}`

// ask gives the answer to a request with these headers, name and value in turn.
func ask(a *answer.Answer, headers ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.Write(w, r)
	return w.Result()
}

func read(t *testing.T, r *http.Response) []byte {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unzip(t *testing.T, b []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// rule: R290
func TestAnAnswerDescribesTheBytesItSends(t *testing.T) {
	for _, tc := range []struct {
		name, accept string
		compressed   bool
	}{
		{"plain", "", false},
		{"compressed", "gzip", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ask(answer.New([]byte(body)), "Accept-Encoding", tc.accept)
			sent := read(t, r)
			if r.StatusCode != http.StatusOK || r.Header.Get("Content-Length") != strconv.Itoa(len(sent)) {
				t.Errorf("status %d, Content-Length %q for %d bytes", r.StatusCode, r.Header.Get("Content-Length"), len(sent))
			}
			for name, want := range map[string]string{
				"Content-Type": "application/json", "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding",
			} {
				if got := r.Header.Values(name); len(got) != 1 || got[0] != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if !tc.compressed {
				if string(sent) != body || r.Header.Get("Content-Encoding") != "" {
					t.Errorf("sent %d bytes with encoding %q", len(sent), r.Header.Get("Content-Encoding"))
				}
				return
			}
			if r.Header.Get("Content-Encoding") != "gzip" || unzip(t, sent) != body || len(sent) >= len(body) {
				t.Errorf("sent %d bytes with encoding %q", len(sent), r.Header.Get("Content-Encoding"))
			}
		})
	}
}

// rule: R290
func TestATagStandsForOneStringOfBytes(t *testing.T) {
	tag := func(a *answer.Answer, accept string) string {
		tag := ask(a, "Accept-Encoding", accept).Header.Get("ETag")
		if len(tag) < 20 || !strings.HasPrefix(tag, `"`) || !strings.HasSuffix(tag, `"`) {
			t.Fatalf("the tag %s is not a strong one", tag)
		}
		return tag
	}
	seen := map[string]string{}
	for _, accept := range []string{"", "gzip"} {
		for name, text := range map[string]string{"the body": body, "a body with one letter changed": strings.Replace(body, "a", "b", 1)} {
			name += " with Accept-Encoding " + strconv.Quote(accept)
			got := tag(answer.New([]byte(text)), accept)
			if other, ok := seen[got]; ok {
				t.Errorf("%s has the tag of %s", name, other)
			}
			seen[got] = name
			// Another replica has the body in other pieces.
			if again := tag(answer.New([]byte(text[:7]), nil, []byte(text[7:])), accept); again != got {
				t.Errorf("%s has the tag %s and then %s", name, got, again)
			}
		}
	}
}

func TestABodyThatCompressionDoesNotShortenIsSentAsItIs(t *testing.T) {
	noise := make([]byte, 4<<10)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(noise) // never fails
	for name, text := range map[string]string{"a short one": `{"taskRuns":[]}`, "noise": string(noise), "none": ""} {
		t.Run(name, func(t *testing.T) {
			plain, other := ask(answer.New([]byte(text))), ask(answer.New([]byte(text)), "Accept-Encoding", "gzip")
			if other.Header.Get("Content-Encoding") != "" || string(read(t, other)) != text {
				t.Errorf("sent with encoding %q", other.Header.Get("Content-Encoding"))
			}
			if plain.Header.Get("ETag") != other.Header.Get("ETag") {
				t.Error("the same bytes have two tags")
			}
		})
	}
}

// rule: R291
func TestACallerThatHasTheAnswerGetsNoBody(t *testing.T) {
	a := answer.New([]byte(body))
	plain := ask(a).Header.Get("ETag")
	zipped := ask(a, "Accept-Encoding", "gzip").Header.Get("ETag")
	changed := ask(answer.New([]byte(body + " "))).Header.Get("ETag")
	for _, tc := range []struct {
		name   string
		accept string
		fields []string
		status int
	}{
		{"the tag", "", []string{plain}, 304},
		{"the tag of the compressed form, which is asked for", "gzip", []string{zipped}, 304},
		{"the tag in its weak form", "", []string{"W/" + plain}, 304},
		{"the tag among others", "", []string{`"a", W/"b",` + plain + ` , "c"`}, 304},
		{"the tag behind one with a comma in it", "", []string{`"a,b", ` + plain}, 304},
		{"the tag in a second field", "", []string{`"a"`, plain}, 304},
		{"any", "", []string{"*"}, 304},
		{"any, with space around", "", []string{" * "}, 304},
		{"nothing", "", nil, 200},
		{"an empty field", "", []string{""}, 200},
		{"another tag", "", []string{changed}, 200},
		{"the tag of the plain form where the compressed one is asked for", "gzip", []string{plain}, 200},
		{"the tag of the compressed form where the plain one is asked for", "", []string{zipped}, 200},
		{"the tag without its quotes", "", []string{strings.Trim(plain, `"`)}, 200},
		{"the tag without its end", "", []string{plain[:len(plain)-1]}, 200},
		{"the tag with more around it", "", []string{`"x` + plain[1:]}, 200},
		{"the tag behind something else", "", []string{"x " + plain}, 200},
		{"a star in quotes", "", []string{`"*"`}, 200},
		{"a star among tags", "", []string{`"a", *`}, 200},
		{"a small w", "", []string{"w/" + plain}, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			headers := []string{"Accept-Encoding", tc.accept}
			for _, f := range tc.fields {
				headers = append(headers, "If-None-Match", f)
			}
			r := ask(a, headers...)
			sent := read(t, r)
			if r.StatusCode != tc.status || (tc.status == 304) != (len(sent) == 0) {
				t.Fatalf("status %d with %d bytes, want %d", r.StatusCode, len(sent), tc.status)
			}
			want := plain
			if tc.accept == "gzip" {
				want = zipped
			}
			if r.Header.Get("ETag") != want || r.Header.Get("Vary") != "Accept-Encoding" || r.Header.Get("Cache-Control") != "private, no-cache" {
				t.Errorf("headers %v", r.Header)
			}
			if tc.status == 304 && (r.Header.Get("Content-Type") != "" || r.Header.Get("Content-Encoding") != "" || r.Header.Get("Content-Length") != "") {
				t.Errorf("a 304 describes a body: %v", r.Header)
			}
		})
	}
}

func TestCompressionIsUsedWhereTheCallerWantsIt(t *testing.T) {
	for _, tc := range []struct {
		fields     []string
		compressed bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZip"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"deflate, gzip, br"}, true},
		{[]string{"deflate", "gzip"}, true},
		{[]string{"gzip;q=1.0"}, true},
		{[]string{"gzip ; q=0.5"}, true},
		{[]string{"gzip;Q=0.001"}, true},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip;q=0.000"}, false},
		{[]string{"*"}, true},
		{[]string{"*;q=0"}, false},
		{[]string{"*;q=0.1, gzip;q=0"}, false},
		{[]string{"gzip, *;q=0"}, true},
		{[]string{"br"}, false},
		{[]string{"identity"}, false},
		{[]string{"identity, gzip"}, true},
		{[]string{"gzip;q=0.5, identity"}, false},
		{[]string{"gzip;q=0.5, identity;q=0.4"}, true},
		{[]string{"gzip;q=0.5, *"}, false},
		{[]string{"identity;q=0, gzip;q=0.1"}, true},
		{[]string{"gzipped"}, false},
		{[]string{"not-gzip"}, false},
		{[]string{"gzip;q=2"}, false},
		{[]string{"gzip;q=1.001"}, false},
		{[]string{"gzip;q=0.5555"}, false},
		{[]string{"gzip;q=-1"}, false},
		{[]string{"gzip;q="}, false},
		{[]string{"gzip;q"}, false},
		{[]string{"gzip;level=9"}, false},
		{[]string{",,;q=1,gzip"}, true},
	} {
		t.Run(fmt.Sprintf("%q", tc.fields), func(t *testing.T) {
			var headers []string
			for _, f := range tc.fields {
				headers = append(headers, "Accept-Encoding", f)
			}
			if got := ask(answer.New([]byte(body)), headers...).Header.Get("Content-Encoding") == "gzip"; got != tc.compressed {
				t.Errorf("compressed: %v, want %v", got, tc.compressed)
			}
		})
	}
}
