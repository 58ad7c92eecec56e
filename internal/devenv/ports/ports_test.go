package ports_test

import (
	"net"
	"testing"

	"hangar.io/glidepath/internal/devenv/ports"
)

func TestNoPortIsReservedTwice(t *testing.T) {
	seen := map[int]bool{}
	for range 300 {
		p, err := ports.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Release()
		if seen[p.Number] {
			t.Fatalf("port %d was reserved twice", p.Number)
		}
		seen[p.Number] = true
	}
}

func TestAReservedPortCanBeListenedOnAgainAndAgain(t *testing.T) {
	p, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	for range 3 {
		l, err := net.Listen("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if ports.Free(p.Number) {
			t.Error("it counts as free while somebody listens")
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if !ports.Free(p.Number) {
			t.Error("it does not count as free when nobody listens")
		}
	}
}

func TestAListenerOnAllAddressesIsSeen(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok || ports.Free(addr.Port) {
		t.Errorf("port of %v counts as free", l.Addr())
	}
}

func TestReleasingTwiceOrNothingIsHarmless(t *testing.T) {
	p, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	p.Release()
	p.Release()
	(*ports.Port)(nil).Release()
}
