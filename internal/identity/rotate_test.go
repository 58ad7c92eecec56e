package identity_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/identity"
)

// captureLogs gives what is logged until the test ends.
func captureLogs(t *testing.T) func() string {
	t.Helper()
	var out lockedBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return out.String
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// move puts a file in the place of another at once.
func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func publicFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func rotating(t *testing.T, k keys) *identity.RotatingSigner {
	t.Helper()
	s, err := identity.NewRotatingSigner(identity.RotatingConfig{PrivateKey: k.private, KeysDir: k.publicDir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A key is changed by files alone, and at no moment does a backend that mounts
// the same folder refuse what authz signs.
func TestASigningKeyIsChangedWithoutARefusal(t *testing.T) {
	k, next := newKeys(t), newKeys(t)
	old := publicFiles(t, k.publicDir)[0]
	synctest.Test(t, func(t *testing.T) {
		s, v := rotating(t, k), k.verifier(t, "livehub")
		go s.Run(t.Context())
		// The backend reads its folder as late as it may after authz.
		time.Sleep(9 * time.Second)
		go v.Run(t.Context())
		first := s.KeyID()
		accepted := func(d time.Duration) {
			t.Helper()
			for range int(d / time.Second) {
				time.Sleep(time.Second)
				if _, err := v.Verify(sign(t, s, claims(nil))); err != nil {
					t.Fatalf("with key %s: %v", s.KeyID(), err)
				}
			}
		}
		// The private key comes first, by mistake: nobody would know it.
		move(t, next.private, k.private)
		accepted(time.Minute)
		if s.KeyID() != first || !s.Pending() {
			t.Fatalf("key %s signs, pending %v", s.KeyID(), s.Pending())
		}
		move(t, publicFiles(t, next.publicDir)[0], filepath.Join(k.publicDir, "next.pem"))
		accepted(25 * time.Second)
		if s.KeyID() != first {
			t.Fatal("the new key signs before every backend knows it")
		}
		accepted(30 * time.Second)
		if s.KeyID() == first || s.Pending() {
			t.Fatalf("key %s signs, pending %v", s.KeyID(), s.Pending())
		}
		if err := os.Remove(old); err != nil {
			t.Fatal(err)
		}
		accepted(time.Minute)
	})
}

func TestAKeyWhosePublicHalfIsGoneSignsNoLonger(t *testing.T) {
	k, next := newKeys(t), newKeys(t)
	synctest.Test(t, func(t *testing.T) {
		s := rotating(t, k)
		go s.Run(t.Context())
		stolen := s.KeyID()
		move(t, next.private, k.private)
		move(t, publicFiles(t, next.publicDir)[0], publicFiles(t, k.publicDir)[0])
		time.Sleep(11 * time.Second)
		if s.KeyID() == stolen {
			t.Error("the stolen key signs, and every backend refuses it")
		}
	})
}

func TestAKeyFileThatIsNoneChangesNothing(t *testing.T) {
	k := newKeys(t)
	logs := captureLogs(t)
	synctest.Test(t, func(t *testing.T) {
		s := rotating(t, k)
		go s.Run(t.Context())
		good, err := os.ReadFile(k.private)
		if err != nil {
			t.Fatal(err)
		}
		for _, broken := range [][]byte{nil, []byte("x"), good[:60]} {
			if err := os.WriteFile(k.private, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(11 * time.Second)
			if sign(t, s, claims(nil)); !s.Pending() {
				t.Error("nothing is pending")
			}
		}
		if err := os.WriteFile(k.private, good, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if s.Pending() {
			t.Error("something is pending")
		}
	})
	if n := bytes.Count([]byte(logs()), []byte("not in force")); n < 1 || n > 3 {
		t.Errorf("said %d times", n)
	}
}

func TestAKeyThatNobodyKnowsDoesNotStart(t *testing.T) {
	k, other := newKeys(t), newKeys(t)
	if _, err := identity.NewRotatingSigner(identity.RotatingConfig{PrivateKey: k.private, KeysDir: other.publicDir}); err == nil {
		t.Error("started")
	}
}
