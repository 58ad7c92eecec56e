package identity_test

import (
	"strings"
	"testing"
)

// FuzzOnlyWhatWasSignedIsVerified looks for an identity that nobody signed and
// a backend takes.
func FuzzOnlyWhatWasSignedIsVerified(f *testing.F) {
	k := newKeys(f)
	v := k.verifier(f, "livehub")
	signed := sign(f, k.signer(f), claims(nil))
	parts := strings.Split(signed, ".")
	for _, token := range []string{
		"", "..", signed, signed + ".", " " + signed, signed + "=", strings.ToUpper(signed), parts[0] + "." + parts[1] + ".",
		"eyJhbGciOiJub25lIn0." + parts[1] + ".", parts[0] + ".e30." + parts[2], strings.Replace(signed, ".", "..", 1), signed + "\x00",
	} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		c, err := v.Verify(token)
		if err != nil {
			return
		}
		// Base64 has more than one way to write the last bits of a signature.
		if i := strings.LastIndexByte(token, '.'); i < 0 || token[:i+1] != parts[0]+"."+parts[1]+"." || c.Subject != claims(nil).Subject {
			t.Errorf("%q was verified as %+v", token, c)
		}
	})
}
