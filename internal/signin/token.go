package signin

import (
	"encoding/base64"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxToken bounds a token's file, in bytes.
const maxToken = 64 << 10

// ErrNone says that nobody is signed in.
var ErrNone = errors.New("not signed in: run `glidepath login`")

// Token is an ID token. What is known of it is what it says itself; the gateway
// is who verifies it.
type Token struct {
	secret  string
	Login   string
	Expires time.Time
}

// Secret gives the token as it is sent.
func (t Token) Secret() string { return t.secret }

// String keeps the token out of what is printed by mistake.
func (Token) String() string { return "[token]" }

// GoString does the same.
func (Token) GoString() string { return "[token]" }

// parse reads what a token says. Its errors repeat nothing of it.
func parse(secret string) (Token, error) {
	parts := strings.Split(secret, ".")
	if len(parts) != 3 {
		return Token{}, errors.New("no ID token")
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, errors.New("an ID token that cannot be read")
	}
	var claims struct {
		Login  string  `json:"preferred_username"`
		Expiry float64 `json:"exp"`
	}
	if err := json.Unmarshal(raw, &claims); err != nil || !printable(claims.Login) {
		return Token{}, errors.New("an ID token that cannot be read")
	}
	return Token{secret: secret, Login: claims.Login, Expires: time.Unix(int64(claims.Expiry), 0)}, nil
}

// DefaultFile is where a token is kept: glidepath/id-token below the folder that
// the XDG Base Directory Specification has for state.
func DefaultFile(getenv func(string) string) (string, error) {
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) { // a relative one counts for nothing, says the specification
		return filepath.Join(state, "glidepath", "id-token"), nil
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", errors.New("neither XDG_STATE_HOME nor HOME says where a token is kept")
	}
	return filepath.Join(home, ".local", "state", "glidepath", "id-token"), nil
}

// Save keeps a token for its owner alone. The file is whole at every moment.
func Save(file string, t Token) (err error) {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keeping the token: %w", err)
	}
	temp, err := os.CreateTemp(dir, ".id-token-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("keeping the token: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = temp.WriteString(t.secret + "\n")
	if err := errors.Join(err, temp.Close()); err != nil {
		return fmt.Errorf("keeping the token: %w", err)
	}
	if err := os.Rename(temp.Name(), file); err != nil {
		return fmt.Errorf("keeping the token: %w", err)
	}
	return nil
}

// Load gives the token that was kept, unless its time is over or others may read
// it.
func Load(file string) (Token, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return Token{}, ErrNone
	}
	if err != nil {
		return Token{}, fmt.Errorf("reading the token: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Token{}, fmt.Errorf("reading the token: %w", err)
	}
	if mode := info.Mode(); !mode.IsRegular() || mode.Perm()&0o077 != 0 {
		return Token{}, fmt.Errorf("%s is not a file for its owner alone: run `glidepath login` again", file)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return Token{}, fmt.Errorf("reading the token: %w", err)
	}
	t, err := parse(strings.TrimSpace(string(raw)))
	if err != nil {
		return Token{}, fmt.Errorf("%s holds %w: run `glidepath login` again", file, err)
	}
	if !time.Now().Before(t.Expires) {
		return Token{}, fmt.Errorf("the token of %s expired at %s: run `glidepath login` again", t.Login, t.Expires.Local().Format(time.DateTime+" MST"))
	}
	return t, nil
}

// Remove forgets the token. There may be none.
func Remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forgetting the token: %w", err)
	}
	return nil
}
