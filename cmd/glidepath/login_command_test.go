package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/internal/signin"
	"hangar.io/glidepath/internal/standin/provider"
)

// browser is somebody who reads what login writes, and answers the code of it.
type browser struct {
	bytes.Buffer

	t       *testing.T
	answer  func(code string) error
	answers int
}

var shownCode = regexp.MustCompile(`(?m)^and enter (\S+)$`)

func (b *browser) Write(p []byte) (int, error) {
	n, err := b.Buffer.Write(p)
	if code := shownCode.FindSubmatch(b.Bytes()); code != nil && b.answers == 0 {
		b.answers++
		if err := b.answer(string(code[1])); err != nil {
			b.t.Error(err) // login may not tell of it
		}
	}
	return n, err
}

// terminalOf makes a terminal with a provider to sign in with, and gives the
// file where it keeps a token.
func terminalOf(t *testing.T) (p *provider.Provider, file string) {
	t.Helper()
	p, err := provider.Start(t.Context(), provider.Config{
		Addr: "127.0.0.1:0", Interval: time.Second, People: []provider.Person{{Login: "jo-hub", Name: "Jo", UserID: "42"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	state := t.TempDir()
	for name, value := range map[string]string{"XDG_STATE_HOME": state, "GLIDEPATH_TOKEN_FILE": "", "GLIDEPATH_OIDC_ISSUER": p.Issuer} {
		t.Setenv(name, value)
	}
	return p, filepath.Join(state, "glidepath", "id-token")
}

// exitCode is what main would end the process with after an error.
func exitCode(t *testing.T, err error) (code int) {
	t.Helper()
	var out bytes.Buffer
	k, bad := kong.New(&cli{}, kong.Writers(&out, &out), kong.Exit(func(c int) { code = c }))
	if bad != nil {
		t.Fatal(bad)
	}
	k.FatalIfErrorf(err)
	return code
}

// hasMode checks who may do what with a file or a folder.
func hasMode(t *testing.T, name string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != want {
		t.Errorf("the mode of %s is %v, want %v", filepath.Base(name), info.Mode(), want)
	}
}

func TestLoginKeepsATokenThatOnlyTokenPrints(t *testing.T) {
	p, file := terminalOf(t)
	jo := &browser{t: t, answer: func(code string) error { return p.Approve(t.Context(), code, "jo-hub") }}
	if err := runTo(t, jo, "login"); err != nil {
		t.Fatalf("%v after\n%s", err, jo)
	}
	if out := jo.String(); !strings.Contains(out, p.Issuer+"/device") || !strings.Contains(out, "Signed in as jo-hub until ") {
		t.Errorf("login writes\n%s", out)
	}
	hasMode(t, file, 0o600)
	hasMode(t, filepath.Dir(file), fs.ModeDir|0o700)
	kept, err := signin.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if kept.Login != "jo-hub" || time.Until(kept.Expires) > provider.TokenLife {
		t.Errorf("kept is a token of %s until %s", kept.Login, kept.Expires)
	}
	for _, part := range strings.Split(kept.Secret(), ".") {
		if strings.Contains(jo.String(), part) {
			t.Error("login writes a part of the token")
		}
	}
	if out, err := run(t, "token"); err != nil || out != kept.Secret()+"\n" {
		t.Errorf("token prints something else than the token, %v", err)
	}

	if out, err := run(t, "logout"); err != nil || out != "" {
		t.Errorf("logout: %q, %v", out, err)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 0 {
		t.Errorf("logout leaves %v, %v", left, err)
	}
	if out, err := run(t, "token"); !errors.Is(err, signin.ErrNone) || out != "" {
		t.Errorf("token after logout: %q, %v", out, err)
	}
}

func TestALoginThatIsDeniedKeepsNothing(t *testing.T) {
	p, file := terminalOf(t)
	jo := &browser{t: t, answer: func(code string) error { return p.Deny(t.Context(), code) }}
	if err := runTo(t, jo, "login"); !errors.Is(err, signin.ErrDenied) || exitCode(t, err) == 0 {
		t.Errorf("got %v after\n%s", err, jo)
	}
	if strings.Contains(jo.String(), "Signed in") {
		t.Errorf("login writes\n%s", jo)
	}
	if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is kept: %v", err)
	}
}
