package edge

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// ownHeaders are those that mean something behind the edge when the edge has
// said them. Two backends may take different spellings for one of them.
var ownHeaders = []string{
	"x-glidepath-identity", "x-glidepath-audit", "x-glidepath-trace-id", "x-glidepath-authorization", "x-request-id",
	"x-envoy-original-path", "x-envoy-internal", "x-forwarded-host", "x-forwarded-client-cert", "x-http-method-override", "x-original-url",
	"authorization", "cookie",
}

// However a caller spells a header of the gateway's own, no backend gets it.
func TestNoSpellingOfAnOwnHeaderGetsThrough(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	const forged = "forged-by-a-caller"
	spellings := map[string]func(name string) string{
		"as it is":                     func(n string) string { return n + ": " + forged },
		"in upper case":                func(n string) string { return strings.ToUpper(n) + ": " + forged },
		"with underscores":             func(n string) string { return strings.ReplaceAll(n, "-", "_") + ": " + forged },
		"with one underscore":          func(n string) string { return strings.Replace(n, "-", "_", 1) + "_: " + forged },
		"with a space at the end":      func(n string) string { return n + " : " + forged },
		"with a tab at the end":        func(n string) string { return n + "\t: " + forged },
		"with a space at the start":    func(n string) string { return " " + n + ": " + forged },
		"with a NUL":                   func(n string) string { return n + "\x00: " + forged },
		"with a carriage return":       func(n string) string { return n + "\r: " + forged },
		"after a bare line feed":       func(n string) string { return "X-A: b\n" + n + ": " + forged },
		"after a carriage return":      func(n string) string { return "X-A: b\r" + n + ": " + forged },
		"on a folded line":             func(n string) string { return n + ":\r\n " + forged },
		"twice":                        func(n string) string { return n + ": " + forged + "\r\n" + n + ": " + forged },
		"with a letter that folds":     func(n string) string { return strings.Replace(n, "i", "\xc4\xb0", 1) + ": " + forged },
		"in a trailer":                 func(n string) string { return "Trailer: " + n },
		"kept by the connection":       func(n string) string { return n + ": " + forged + "\r\nConnection: close, " + n },
		"with the colon in its value":  func(n string) string { return n + "::" + forged },
		"without a value at first":     func(n string) string { return n + ":\r\n" + n + ": " + forged },
		"as 20 KiB":                    func(n string) string { return n + ": " + strings.Repeat(forged+"/", 1000) },
		"as more than the edge takes":  func(n string) string { return n + ": " + strings.Repeat(forged+"/", 3000) },
		"as many small ones":           func(n string) string { return strings.Repeat(n+": "+forged+"\r\n", 60) + "X-A: b" },
		"as more than there may be":    func(n string) string { return strings.Repeat(n+": "+forged+"\r\n", 120) + "X-A: b" },
		"with nothing before the name": func(n string) string { return "\x01" + n + ": " + forged },
	}
	var answers atomic.Int32
	t.Run("spelled:", func(t *testing.T) {
		for how, spell := range spellings {
			t.Run(how, func(t *testing.T) {
				t.Parallel()
				for _, name := range ownHeaders {
					body := "0\r\n\r\n"
					if how == "in a trailer" {
						body = "0\r\n" + name + ": " + forged + "\r\n\r\n"
					}
					for _, a := range e.exchange(t, "POST /v1/apps/shop/cicd/validations HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer VALID\r\n"+
						"Transfer-Encoding: chunked\r\n"+spell(name)+"\r\nX-Last: 1\r\nConnection: close\r\n\r\n"+body, untilClosed) {
						wantSound(t, a)
						answers.Add(1)
					}
				}
			})
		}
	})
	if n := e.wantAllPaired(t, int(answers.Load())); n < 50 {
		t.Errorf("only %d requests reached a backend", n)
	}
	for _, r := range e.backend.seen() {
		for name, values := range r.Header {
			plain := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
			if slices.Contains(ownHeaders, plain) && strings.Contains(strings.Join(values, ","), forged) {
				t.Errorf("a backend got %s: %.60q", name, values)
			}
		}
		for name := range r.Trailer {
			t.Errorf("a backend was told of the trailer %s", name)
		}
	}
}
