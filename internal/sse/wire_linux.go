package sse

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// giveUp has the kernel give a connection up whose peer acknowledges nothing for
// a time. A peer that lost its power takes little enough that each write goes
// well, and would hold a stream for a quarter of an hour.
func giveUp(conn net.Conn, after time.Duration) error {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return fmt.Errorf("reaching the socket of a stream: %w", err)
	}
	var fault error
	err = raw.Control(func(fd uintptr) {
		fault = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
	})
	if err == nil {
		err = fault
	}
	if err != nil {
		return fmt.Errorf("bounding a stream whose reader is away: %w", err)
	}
	return nil
}
