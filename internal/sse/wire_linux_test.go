package sse_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hangar.io/glidepath/internal/sse"
)

// deaf has a socket hear nothing any more, so that it acknowledges nothing, as
// that of a machine without power.
func deaf(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	var fault error
	err = raw.Control(func(fd uintptr) {
		fault = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
	})
	if err != nil || fault != nil {
		t.Fatal(err, fault)
	}
}

// Every write to it goes well, since the kernel keeps so much, and its stream
// would be open until the kernel gives up by itself, after a quarter of an hour.
func TestAReaderWhoseMachineIsGoneLosesItsStream(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := sse.Take(w, r, 2*time.Second, func() { close(gone) })
		if err != nil {
			t.Error(err)
			return
		}
		go func() {
			defer s.Close()
			ping := time.NewTicker(100 * time.Millisecond)
			defer ping.Stop()
			for s.Send(sse.Comment("ping")) == nil {
				select {
				case <-ping.C:
				case <-gone:
					return
				}
			}
		}()
	}))
	t.Cleanup(server.Close)
	conn := send(t, server.URL, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := io.ReadFull(conn, make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	deaf(t, conn)
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("it is held")
		deafEnds(t, conn)
	}
}

// deafEnds has a socket hear again.
func deafEnds(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) }); err != nil {
		t.Fatal(err)
	}
}
