package paging_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/paging"
	"hangar.io/glidepath/internal/seal"
)

var (
	list = paging.List{Operation: "listLiveRuns", Scope: "uid-1", Limit: 50, Filters: []string{"a", "b"}}
	last = paging.Position{"app-shop-cicd", "build-1"}
)

func tokens(t testing.TB, key byte) *paging.Tokens {
	t.Helper()
	keys, err := seal.NewKeys(bytes.Repeat([]byte{key}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := paging.New(keys)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func give(t testing.TB, tokens *paging.Tokens, l paging.List, p paging.Position) string {
	t.Helper()
	token, err := tokens.Give(l, p)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestATokenBelongsToTheListThatGaveIt(t *testing.T) {
	mine := tokens(t, 1)
	token := give(t, mine, list, last)
	with := func(change func(*paging.List)) paging.List {
		l := list
		l.Filters = slices.Clone(list.Filters)
		change(&l)
		return l
	}
	for _, tc := range []struct {
		name  string
		list  paging.List
		token string
		taken bool
	}{
		{"its own list", list, token, true},
		{"another operation", with(func(l *paging.List) { l.Operation = "listFleetReleases" }), token, false},
		{"another scope", with(func(l *paging.List) { l.Scope = "uid-2" }), token, false},
		{"the whole fleet", with(func(l *paging.List) { l.Scope = "" }), token, false},
		{"another page size", with(func(l *paging.List) { l.Limit = 51 }), token, false},
		{"another filter", with(func(l *paging.List) { l.Filters[1] = "c" }), token, false},
		{"fewer filters", with(func(l *paging.List) { l.Filters = l.Filters[:1] }), token, false},
		{"filters that are the same when joined", with(func(l *paging.List) { l.Filters = []string{"a,b"} }), token, false},
		{"no token", list, "", false},
		{"a token with a piece cut off", list, token[:len(token)-4], false},
		{"a token with one letter changed", list, "A" + token[1:], false},
		{"a token with a line end in it", list, token[:8] + "\n" + token[8:], false},
		{"a token with padding", list, token + "=", false},
		{"a token in the standard alphabet", list, strings.NewReplacer("-", "+", "_", "/").Replace(token) + "+", false},
		{"a token that is too long", list, strings.Repeat("A", paging.MaxToken+1), false},
		{"a token that was made without a key", list, base64.RawURLEncoding.EncodeToString([]byte(`["a","b"]`)), false},
		{"a token of another service's key", list, give(t, tokens(t, 2), list, last), false},
		{"a token without a position", list, give(t, mine, list, nil), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := mine.Take(tc.list, tc.token)
			switch {
			case tc.taken && (err != nil || got.Compare(last) != 0):
				t.Errorf("got %v, %v", got, err)
			case !tc.taken && (!errors.Is(err, paging.ErrToken) || got != nil):
				t.Errorf("got %v, %v, want ErrToken", got, err)
			}
		})
	}
}

func TestATokenHasOneForm(t *testing.T) {
	mine := tokens(t, 1)
	spare := 0 // tokens whose last letter says more than its byte needs
	for n := range 3 {
		token := give(t, mine, list, paging.Position{"ns", strings.Repeat("x", n+1)})
		if len(token)%4 == 0 {
			continue
		}
		spare++
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		at := len(token) - 1
		other := token[:at] + string(alphabet[strings.IndexByte(alphabet, token[at])^1])
		if _, err := mine.Take(list, other); !errors.Is(err, paging.ErrToken) {
			t.Errorf("%s is taken for %s", other, token)
		}
	}
	if spare != 2 {
		t.Errorf("%d tokens were tried", spare)
	}
}

func TestEveryReplicaGivesTheSameTokenForTheSamePage(t *testing.T) {
	a, b := give(t, tokens(t, 1), list, last), give(t, tokens(t, 1), list, last)
	if a != b {
		t.Errorf("got %s and %s", a, b)
	}
	if c := give(t, tokens(t, 1), list, paging.Position{"app-shop-cicd", "build-2"}); a == c {
		t.Error("two positions have one token")
	}
}

func TestATokenShowsNothingAndFitsItsBound(t *testing.T) {
	token := give(t, tokens(t, 1), list, last)
	if strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("%s has characters that a query escapes", token)
	}
	plain, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || bytes.Contains(plain, []byte("shop")) {
		t.Errorf("the token shows %q, %v", plain, err)
	}
	longest := paging.Position{strings.Repeat("n", 63), strings.Repeat("o", 253)}
	if token := give(t, tokens(t, 1), list, longest); len(token) > paging.MaxToken {
		t.Errorf("the longest names make a token of %d bytes", len(token))
	}
	if _, err := tokens(t, 1).Give(list, paging.Position{strings.Repeat("x", 2*paging.MaxToken)}); err == nil {
		t.Error("a token that nobody would take is given")
	}
}

func TestPositionsAreOrderedPartByPart(t *testing.T) {
	sorted := []paging.Position{{"a", "b"}, {"a", "c"}, {"a-b", "a"}, {"b", "a"}}
	for i := range sorted {
		for j := range sorted {
			if got, want := sorted[i].Compare(sorted[j]), min(max(i-j, -1), 1); got != want {
				t.Errorf("%v and %v compare as %d, want %d", sorted[i], sorted[j], got, want)
			}
		}
	}
}

func TestTokensNeedAKey(t *testing.T) {
	if _, err := paging.New(seal.Keys{}); err == nil {
		t.Error("no key is enough")
	}
}

func FuzzATokenIsTakenOnlyIfItWasGiven(f *testing.F) {
	tokens := tokens(f, 1)
	f.Add("", "ns", "name")
	f.Add(give(f, tokens, list, last), last[0], last[1])
	f.Add(give(f, tokens, paging.List{}, last), "", "")
	f.Fuzz(func(t *testing.T, forged, namespace, name string) {
		if got, err := tokens.Take(list, forged); err == nil && forged != give(t, tokens, list, got) {
			t.Fatalf("%q was taken as %v and never given", forged, got)
		}
		token, err := tokens.Give(list, paging.Position{namespace, name})
		if err != nil {
			return // too long
		}
		got, err := tokens.Take(list, token)
		if err != nil || len(got) != 2 {
			t.Fatalf("%q gave %q, which is taken as %v, %v", namespace+"/"+name, token, got, err)
		}
	})
}
