package seal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/seal"
)

func keys(t *testing.T, fill ...byte) seal.Keys {
	t.Helper()
	raw := make([][]byte, 0, len(fill))
	for _, b := range fill {
		raw = append(raw, bytes.Repeat([]byte{b}, seal.KeySize))
	}
	k, err := seal.NewKeys(raw...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sealer(t *testing.T, k seal.Keys, purpose string) *seal.Sealer {
	t.Helper()
	s, err := seal.New(k, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASealedValueOpensOnlyAsItWasAndWhereItBelongs(t *testing.T) {
	s := sealer(t, keys(t, 1), "cache")
	sealed := s.Seal(nil, []byte("a value"), "place")
	changed := func(i int) []byte {
		c := bytes.Clone(sealed)
		c[i] ^= 1
		return c
	}
	for _, tc := range []struct {
		name   string
		sealer *seal.Sealer
		sealed []byte
		place  string
		opens  bool
	}{
		{"as it was", s, sealed, "place", true},
		{"by another sealer of the same key and purpose", sealer(t, keys(t, 1), "cache"), sealed, "place", true},
		{"after the key has been replaced, while the old one still opens", sealer(t, keys(t, 2, 1), "cache"), sealed, "place", true},
		{"at another place", s, sealed, "elsewhere", false},
		{"by another key", sealer(t, keys(t, 2), "cache"), sealed, "place", false},
		{"for another purpose", sealer(t, keys(t, 1), "token"), sealed, "place", false},
		{"with another nonce", s, changed(0), "place", false},
		{"with another text", s, changed(len(sealed) / 2), "place", false},
		{"with another tag", s, changed(len(sealed) - 1), "place", false},
		{"without its end", s, sealed[:len(sealed)-1], "place", false},
		{"with more at its end", s, append(bytes.Clone(sealed), 0), "place", false},
		{"when it is shorter than any", s, sealed[:seal.Overhead-1], "place", false},
		{"when it is nothing", s, nil, "place", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plain, err := tc.sealer.Open(nil, tc.sealed, tc.place)
			switch {
			case tc.opens && (err != nil || string(plain) != "a value"):
				t.Errorf("got %q, %v", plain, err)
			case !tc.opens && (!errors.Is(err, seal.ErrOpen) || plain != nil):
				t.Errorf("got %q, %v, want ErrOpen alone", plain, err)
			}
		})
	}
}

func TestSealingAppends(t *testing.T) {
	s := sealer(t, keys(t, 1), "cache")
	sealed := s.Seal([]byte("before"), []byte("a value"), "place")
	if len(sealed) != len("before")+len("a value")+seal.Overhead || !bytes.HasPrefix(sealed, []byte("before")) {
		t.Errorf("sealed into %d bytes: %q", len(sealed), sealed)
	}
	plain, err := s.Open([]byte("first "), sealed[len("before"):], "place")
	if err != nil || string(plain) != "first a value" {
		t.Errorf("opened %q, %v", plain, err)
	}
}

func TestSealingTwiceGivesTwoFormsUnlessTheSameIsAskedFor(t *testing.T) {
	s := sealer(t, keys(t, 1), "token")
	if bytes.Equal(s.Seal(nil, []byte("x"), "place"), s.Seal(nil, []byte("x"), "place")) {
		t.Error("Seal gave one form twice: its nonce repeats")
	}
	same := s.SealSame(nil, []byte("x"), "place")
	if !bytes.Equal(same, sealer(t, keys(t, 1), "token").SealSame(nil, []byte("x"), "place")) {
		t.Error("SealSame gave two forms of the same")
	}
	nonce := func(sealed []byte) string { return string(sealed[:12]) }
	for name, other := range map[string][]byte{
		"another text":                         s.SealSame(nil, []byte("y"), "place"),
		"another place":                        s.SealSame(nil, []byte("x"), "places"),
		"text that was moved into the place":   s.SealSame(nil, nil, "placex"),
		"another key":                          sealer(t, keys(t, 2), "token").SealSame(nil, []byte("x"), "place"),
		"another purpose with the same key":    sealer(t, keys(t, 1), "other").SealSame(nil, []byte("x"), "place"),
		"place that was moved into the text":   s.SealSame(nil, []byte("ex"), "plac"),
		"the same value sealed without a rule": s.Seal(nil, []byte("x"), "place"),
	} {
		if nonce(other) == nonce(same) {
			t.Errorf("%s has the same nonce", name)
		}
	}
	if plain, err := s.Open(nil, same, "place"); err != nil || string(plain) != "x" {
		t.Errorf("opened %q, %v", plain, err)
	}
}

func TestASealerNeedsAKeyAndAPurpose(t *testing.T) {
	if _, err := seal.New(seal.Keys{}, "cache"); err == nil {
		t.Error("no key is enough")
	}
	if _, err := seal.New(keys(t, 1), ""); err == nil {
		t.Error("no purpose is enough")
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	k := keys(t, 'K')
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(form, k); strings.Contains(text, "KK") || strings.Contains(text, "75") || strings.Contains(text, "0x4b") {
			t.Errorf("%s shows %s", form, text)
		}
	}
}

func FuzzOpenNeverTakesWhatWasNotSealed(f *testing.F) {
	k, err := seal.NewKeys(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		f.Fatal(err)
	}
	s, err := seal.New(k, "cache")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("a value"), "place", []byte{})
	f.Add([]byte{}, "", make([]byte, seal.Overhead))
	f.Fuzz(func(t *testing.T, plain []byte, place string, forged []byte) {
		got, err := s.Open(nil, s.Seal(nil, plain, place), place)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("got %q, %v, want %q", got, err, plain)
		}
		if got, err := s.Open(nil, forged, place); err == nil {
			t.Fatalf("forged bytes opened as %q", got)
		}
	})
}
