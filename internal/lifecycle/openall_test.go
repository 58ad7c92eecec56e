package lifecycle_test

import (
	"errors"
	"net"
	"path/filepath"
	"testing"

	"hangar.io/glidepath/internal/lifecycle"
)

func TestListenersAreOpenedTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	const any = "127.0.0.1:0"
	socket := filepath.Join(t.TempDir(), "s")
	var one, none, two, three net.Listener
	noPort := errors.New("no port")
	err := lifecycle.OpenAll(
		lifecycle.Opening{To: &one, Open: lifecycle.Listen, Addr: any},
		lifecycle.Opening{To: &none, Open: lifecycle.Listen},
		lifecycle.Opening{To: &two, Open: lifecycle.ListenUnix, Addr: socket},
		lifecycle.Opening{To: &three, Open: func(string) (net.Listener, error) { return nil, noPort }, Addr: any},
	)
	if !errors.Is(err, noPort) || one != nil || none != nil || two != nil || three != nil {
		t.Fatalf("got %v, %v, %v, %v", err, one, two, three)
	}
	if c, err := net.Dial("unix", socket); err == nil {
		t.Error("the socket is still served", c.Close())
	}
	err = lifecycle.OpenAll(
		lifecycle.Opening{To: &one, Open: lifecycle.Listen, Addr: any},
		lifecycle.Opening{To: &none, Open: lifecycle.Listen},
		lifecycle.Opening{To: &two, Open: lifecycle.ListenUnix, Addr: socket},
	)
	if err != nil || none != nil {
		t.Fatal(err, none)
	}
	for _, l := range []net.Listener{one, two} {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
