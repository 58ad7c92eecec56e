package extauthz_test

import (
	"fmt"
	"maps"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"

	"hangar.io/glidepath/authz/extauthz"
)

// generated reads a header of a message as the generated types have it: once for
// the map, and once for each in the list.
func generated(req *authv3.CheckRequest, name string) (value string, times int) {
	http := req.GetAttributes().GetRequest().GetHttp()
	if v, ok := http.GetHeaders()[name]; ok {
		value, times = v, 1
	}
	for _, h := range http.GetHeaderMap().GetHeaders() {
		if h.GetKey() == name {
			times++
			if value = h.GetValue(); value == "" {
				value = string(h.GetRawValue())
			}
		}
	}
	return value, times
}

// FuzzParse looks for a check that is read otherwise than the library reads it:
// a call could then be decided by what it is not.
func FuzzParse(f *testing.F) {
	plain := request("listLive", "GET", "/v1/apps/shop/live", map[string]string{"x-glidepath-on-behalf-of": "ana"})
	both := proto.CloneOf(plain)
	both.GetAttributes().GetRequest().GetHttp().HeaderMap = &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
		{Key: "authorization", RawValue: []byte("Bearer y")}, {Key: "authorization", Value: "Bearer z", RawValue: []byte("\xff")}, {},
	}}
	two := wire(f, both)
	full := asEnvoySends(f, request("cancelPipelineRun", "POST", "/v1/x", nil), "token")
	f.Add(wire(f, plain))
	f.Add(two)
	f.Add(full)
	f.Add(append(append([]byte{}, full...), two...)) // merged: messages within one another, the last text of each
	f.Add([]byte{0x08, 0x01, 0x0b, 0x0c})            // a number and a group where the attributes belong
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := extauthz.Parse(raw)
		want := new(authv3.CheckRequest)
		if proto.Unmarshal(raw, want) != nil {
			return // what is not looked at may be malformed
		}
		if err != nil {
			t.Fatalf("refused: %v: %v", err, want)
		}
		http := want.GetAttributes().GetRequest().GetHttp()
		if got.Method != http.GetMethod() || got.Path != http.GetPath() {
			t.Errorf("read %q %q, want %q %q", got.Method, got.Path, http.GetMethod(), http.GetPath())
		}
		if !maps.Equal(got.Extensions, want.GetAttributes().GetContextExtensions()) {
			t.Errorf("extensions %v, want %v", got.Extensions, want.GetAttributes().GetContextExtensions())
		}
		names := map[string]bool{"absent": true, "authorization": true}
		for name := range http.GetHeaders() {
			names[name] = true
		}
		for _, h := range http.GetHeaderMap().GetHeaders() {
			names[h.GetKey()] = true
		}
		for name := range names {
			value, times := got.Header(name)
			if wantValue, wantTimes := generated(want, name); value != wantValue || times != wantTimes {
				t.Errorf("%q is %q, %d times, want %q, %d times", name, value, times, wantValue, wantTimes)
			}
		}
	})
}

func TestACheckThatIsNoMessageIsNotRead(t *testing.T) {
	for name, raw := range map[string]string{
		"no message":         "\xff",
		"cut short":          "\x0a\x05ab",
		"a path of no text":  "\x0a\x07\x22\x05\x12\x03\x22\x01\xff",
		"a group in no end":  "\x0b",
		"a name of no text":  "\x0a\x05\x52\x03\x0a\x01\xff",
		"a header cut short": "\x0a\x08\x22\x06\x12\x04\x6a\x02\x0a\x05",
	} {
		if p, err := extauthz.Parse([]byte(raw)); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestALargeIdentityIsMadeForEachCall(t *testing.T) {
	for name, tc := range map[string]struct {
		groups int
		kept   int
	}{
		"of a few groups":       {4, 1},
		"of hundreds of groups": {400, 0},
	} {
		t.Run(name, func(t *testing.T) {
			groups := make([]string, tc.groups)
			for i := range groups {
				groups[i] = fmt.Sprintf("system:serviceaccounts:team-%04d", i)
			}
			e := newEdge(t, allowing(caller(t, "reader", groups...)))
			for range 2 {
				resp := e.check(t, request("whoami", "GET", "/v1/whoami", nil))
				if c := e.claims(t, resp, "authz"); c.Who == nil || len(c.Who.Groups) != tc.groups {
					t.Fatalf("got %+v", c)
				}
			}
			if got := e.Kept(); got != tc.kept {
				t.Errorf("%d answers are kept, want %d", got, tc.kept)
			}
		})
	}
}
