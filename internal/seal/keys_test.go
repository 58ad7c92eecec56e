package seal_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/seal"
)

func TestAKeyFileIsReadOrRefusedWithoutShowingIt(t *testing.T) {
	line := func(b string, n int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(b, n))) }
	good := line("a", seal.KeySize)
	for _, tc := range []struct {
		name, text string
		fault      string // empty when the file is good
	}{
		{"one key", good, ""},
		{"one key and a line end", good + "\r\n", ""},
		{"two keys and empty lines", good + "\n\n" + line("b", seal.KeySize) + "\n\n", ""},
		{"nothing", "", "no seal key"},
		{"empty lines", "\n \n", "no seal key"},
		{"no base64", "no base64!", "line 1 is not base64"},
		{"a short key", line("a", seal.KeySize-1), "31 bytes"},
		{"a long key", line("a", seal.KeySize+1), "33 bytes"},
		{"a good and a bad one", good + "\n" + line("a", 5), "seal key 2"},
		{"far too much", strings.Repeat(good+"\n", 200), "larger than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := seal.LoadKeys(file)
			switch {
			case tc.fault == "" && err != nil:
				t.Error(err)
			case tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)):
				t.Errorf("got %v, want one that says %q", err, tc.fault)
			case err != nil && len(tc.text) > 8 && strings.Contains(err.Error(), tc.text[:8]):
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
	if _, err := seal.LoadKeys(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file is taken")
	}
}

func TestAGeneratedKeyFileIsReadByItsOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	sealed := make([][]byte, 2)
	for i, name := range []string{"a", "b"} {
		file := filepath.Join(dir, name)
		if err := seal.GenerateKeyFile(file); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, want 0600", info.Mode().Perm())
		}
		k, err := seal.LoadKeys(file)
		if err != nil {
			t.Fatal(err)
		}
		sealed[i] = sealer(t, k, "cache").SealSame(nil, []byte("x"), "place")
	}
	if string(sealed[0]) == string(sealed[1]) {
		t.Error("two generated keys are the same")
	}
	if err := seal.GenerateKeyFile(filepath.Join(dir, "none", "c")); err == nil {
		t.Error("writing into a missing folder succeeds")
	}
}
