package answer

import (
	"strings"
	"testing"
)

func TestABodyIsCompressedOnceForAllWhoTakeIt(t *testing.T) {
	a := New([]byte(strings.Repeat("a", minCompressed)))
	first, second := a.gzip(), a.gzip()
	if first.encoding != "gzip" || &first.parts[0][0] != &second.parts[0][0] {
		t.Error("it was compressed twice, or not at all")
	}
}

// FuzzIfNoneMatch: a list is what its members are, whatever stands around.
func FuzzIfNoneMatch(f *testing.F) {
	f.Add(`"a", W/"b"`, "x")
	f.Add("*", "")
	f.Add(`"`, `a"b`)
	f.Add(`W/`, ",")
	f.Fuzz(func(t *testing.T, field, opaque string) {
		if strings.Contains(opaque, `"`) {
			opaque = "o"
		}
		etag := `"` + opaque + `"`
		got := matches([]string{field}, etag)
		if got && field != etag && strings.Trim(field, " \t") != "*" && !strings.Contains(field, etag) {
			t.Fatalf("%q matches %s, which it does not name", field, etag)
		}
		if !matches([]string{etag, field}, etag) || !matches([]string{"W/" + etag + "," + field}, etag) {
			t.Fatalf("%s is not found before %q", etag, field)
		}
	})
}

// FuzzAcceptEncoding: gzip is used only for a caller that named it or "*".
func FuzzAcceptEncoding(f *testing.F) {
	f.Add("gzip;q=0.5, *;q=0")
	f.Add("identity;q=1, gzip")
	f.Add(";;,=q")
	f.Fuzz(func(t *testing.T, field string) {
		if acceptsGzip([]string{field}) && !strings.Contains(strings.ToLower(field), "gzip") && !strings.Contains(field, "*") {
			t.Fatalf("%q gets gzip", field)
		}
		if acceptsGzip([]string{field}) != acceptsGzip([]string{field, ""}) {
			t.Fatalf("an empty field changes what %q means", field)
		}
		if acceptsGzip([]string{"gzip;q=0", "x-gzip;q=0"}) {
			t.Fatal("what weighs nothing is used")
		}
	})
}
