package denylist_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/denylist"
)

const example = `version: "1"
users:
  - system:serviceaccount:shop:ci
  - name: people:old
    until: 2026-01-01T00:00:00Z
people:
  - name: Ana
    reason: laptop stolen
  - user:default/bob
  - people:carl
  - People:dora
groups:
  - name: system:serviceaccounts:bad
    until: 2027-01-01T00:00:00Z
`

func caller(t testing.TB, name string, groups ...string) *authn.Caller {
	t.Helper()
	if strings.HasPrefix(name, authn.PersonPrefix) {
		return &authn.Caller{Facts: authn.Facts{Username: name, Groups: groups}, Kind: authn.Person}
	}
	c, err := authn.NewClusterCaller(authn.Facts{Username: name, Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhoIsDenied(t *testing.T) {
	l, err := denylist.Parse("deny.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	const ci = "system:serviceaccount:shop:ci"
	for name, tc := range map[string]struct {
		caller, person string
		groups         []string
		at             string
		by             string // the entry's name, empty when nobody is denied
	}{
		"a user by name":                             {ci, "", nil, "2026-06-01", ci},
		"a user of another name":                     {ci + "2", "", nil, "2026-06-01", ""},
		"a user of the name in another case":         {strings.ToUpper(ci), "", nil, "2026-06-01", ""},
		"a user whose entry has ended":               {"people:old", "", nil, "2026-01-01", ""},
		"the same user just before":                  {"people:old", "", nil, "2025-12-31", "people:old"},
		"a person who signs in":                      {"people:ana", "", nil, "2026-06-01", "Ana"},
		"a person listed with the prefix":            {"people:carl", "", nil, "2026-06-01", "people:carl"},
		"a person whom a delegate names":             {"tower", "ana", nil, "2026-06-01", "Ana"},
		"the same in another case":                   {"tower", "ANA", nil, "2026-06-01", "Ana"},
		"the same with the prefix":                   {"tower", "people:ana", nil, "2026-06-01", "Ana"},
		"the same with the prefix in another case":   {"tower", "People:ana", nil, "2026-06-01", "Ana"},
		"one listed with the prefix in another case": {"people:dora", "", nil, "2026-06-01", "People:dora"},
		"another form of a person on the list":       {"tower", "user:default/ana", nil, "2026-06-01", ""},
		"a delegate's own form of a person":          {"tower", "user:default/bob", nil, "2026-06-01", "user:default/bob"},
		"a user who is called as a person is":        {"ana", "", nil, "2026-06-01", ""},
		"a delegate for somebody else":               {"tower", "bobby", nil, "2026-06-01", ""},
		"a member of a group":                        {"x", "", []string{"system:authenticated", "system:serviceaccounts:bad"}, "2026-06-01", "system:serviceaccounts:bad"},
		"a member of it once the entry has ended":    {"x", "", []string{"system:serviceaccounts:bad"}, "2027-01-01", ""},
		"a member of another group":                  {"x", "", []string{"system:serviceaccounts:badly"}, "2026-06-01", ""},
		"a user with the name of a group":            {"system:serviceaccounts:bad", "", nil, "2026-06-01", ""},
		"a denied delegate, for anyone":              {ci, "zoe", nil, "2026-06-01", ci},
		"a delegate of a denied group, for anybody":  {"tower", "zoe", []string{"system:serviceaccounts:bad"}, "2026-06-01", "system:serviceaccounts:bad"},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.DateOnly, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			e, denied := l.Denies(caller(t, tc.caller, tc.groups...), tc.person, at)
			if denied != (tc.by != "") || denied && e.Name != tc.by {
				t.Errorf("denied %v by %q", denied, e.Name)
			}
		})
	}
}

func TestAFaultOfAFileIsToldWithItsPlace(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing at all":          {"", "d:1:1: empty"},
		"a comment alone":         {"# none\n", "d:1:1: "},
		"no mapping":              {"- a\n", "d:1:1: the list: not a mapping"},
		"no version":              {"users: [a]\n", "d:1:1: version: missing"},
		"another version":         {"version: \"2\"\n", "d:1:10: version: only 1"},
		"an unknown key":          {"version: \"1\"\nuser: [a]\n", `d:2:1: unknown key "user"`},
		"a name that is no list":  {"version: \"1\"\nusers: a\n", "d:2:8: users: not a list"},
		"a kind twice":            {"version: \"1\"\nusers: [a]\nusers: [b]\n", `d:3:1: `},
		"an empty name":           {"version: \"1\"\nusers: [\"\"]\n", "d:2:9: "},
		"no name":                 {"version: \"1\"\nusers: [null]\n", "d:2:9: "},
		"a name with spaces":      {"version: \"1\"\nusers: [\" a\"]\n", "d:2:9: "},
		"a pattern":               {"version: \"1\"\nusers: [\"system:*\"]\n", "d:2:9: "},
		"an entry without a name": {"version: \"1\"\npeople:\n  - reason: x\n", "d:3:5: name: missing"},
		"an unknown key in one":   {"version: \"1\"\npeople:\n  - {name: a, untl: x}\n", `d:3:15: unknown key "untl"`},
		"an end that is no time":  {"version: \"1\"\npeople:\n  - {name: a, until: tomorrow}\n", "d:3:22: until: "},
		"a name twice":            {"version: \"1\"\npeople: [Ana, ana]\n", `d:2:15: "ana" is named twice`},
		"an anchor":               {"version: \"1\"\nusers: &a [x]\n", "anchors"},
		"a second document":       {"version: \"1\"\n---\nversion: \"1\"\n", "a second document"},
		"no YAML":                 {"version: [\n", "not YAML"},
		"far too much":            {strings.Repeat("#", denylist.MaxBytes+1), "d: larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := denylist.Parse("d", []byte(tc.text))
			if err == nil || l != nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if _, ok := errors.AsType[*denylist.ParseError](err); err != nil && !ok {
				t.Errorf("a %T", err)
			}
		})
	}
}

func TestAllFaultsAreToldTogether(t *testing.T) {
	_, err := denylist.Parse("d", []byte("version: \"2\"\nusers: x\nmoon: y\n"))
	for _, line := range []int{1, 2, 3} {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("d:%d:", line)) {
			t.Errorf("line %d is not in %v", line, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("version: \"1\"\n")
	f.Add("version: \"1\"\npeople:\n - {name: a, until: 2026-01-01T00:00:00Z, reason: b}\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := denylist.Parse("d", []byte(text))
		if (l == nil) != (err != nil) {
			t.Errorf("a list %v and an error %v", l != nil, err)
		}
		if l != nil {
			l.Denies(caller(t, "x"), "y", time.Now())
		}
	})
}
