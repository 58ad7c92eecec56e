package signin_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/signin"
)

// signedIn gives a token as a sign-in does.
func signedIn(t *testing.T, life time.Duration) (token signin.Token) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		expires := time.Unix(4000000000, 0)
		if life != 0 {
			expires = time.Unix(1, 0)
		}
		var err error
		token, _, err = login(t.Context(), newDex(`{"access_token":"x","id_token":"`+idToken("jo-hub", expires)+`"}`))
		if err != nil {
			t.Fatal(err)
		}
	})
	return token
}

func TestATokenIsKeptForItsOwnerAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "glidepath", "id-token")
	if _, err := signin.Load(file); !errors.Is(err, signin.ErrNone) {
		t.Errorf("before: %v", err)
	}
	token := signedIn(t, 0)
	for range 2 { // the second takes the first's place
		if err := signin.Save(file, token); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s: mode %o", name, info.Mode().Perm())
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	got, err := signin.Load(file)
	if err != nil || got.Secret() != token.Secret() || got.Login != "jo-hub" {
		t.Errorf("got %+v, %v", got, err)
	}
	for range 2 {
		if err := signin.Remove(file); err != nil {
			t.Error(err)
		}
	}
	if _, err := signin.Load(file); !errors.Is(err, signin.ErrNone) {
		t.Errorf("after: %v", err)
	}
}

func TestAFileThatHoldsNoUsableToken(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"one that others may read": {signedIn(t, 0).Secret(), 0o640, "owner alone"},
		"an expired token":         {signedIn(t, time.Second).Secret(), 0o600, "expired"},
		"something else":           {"secret-text", 0o600, "no ID token"},
		"nothing":                  {"", 0o600, "no ID token"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "id-token")
			if err := os.WriteFile(file, []byte(tc.content), tc.mode); err != nil {
				t.Fatal(err)
			}
			_, err := signin.Load(file)
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.content != "" && strings.Contains(err.Error(), tc.content) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhereATokenIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want string
	}{
		"a folder for state":   {map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/glidepath/id-token"},
		"the home folder":      {map[string]string{"HOME": "/h"}, "/h/.local/state/glidepath/id-token"},
		"a relative one is no": {map[string]string{"XDG_STATE_HOME": "s", "HOME": "/h"}, "/h/.local/state/glidepath/id-token"},
		"nowhere":              {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := signin.DefaultFile(func(k string) string { return tc.env[k] })
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
