package sse

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// wire is what a stream is written to.
type wire interface {
	// write sends frames and sees them off.
	write(frames [][]byte) error
	// deadline is when a write fails that has not ended.
	deadline(at time.Time) error
	// close ends the answer, as one that is whole or not.
	close(whole bool)
}

// answer writes to whatever there is.
type answer struct {
	http.ResponseWriter
	*http.ResponseController
}

func (a answer) write(frames [][]byte) error {
	for _, f := range frames {
		if _, err := a.Write(f); err != nil {
			return err
		}
	}
	return a.Flush()
}

func (a answer) deadline(at time.Time) error { return a.SetWriteDeadline(at) }

// close leaves the end to the server.
func (a answer) close(bool) {}

// connection writes to a connection that was taken from the server: each write
// is one chunk and one call of the kernel, where the server needs two for four
// kilobytes, and an idle stream keeps none of the server's buffers.
type connection struct {
	conn net.Conn
	// head is the beginning of the answer, until it is sent.
	head []byte
	// parts are those of a write; they are here so that they need not be made.
	parts   net.Buffers
	length  [20]byte
	reading sync.WaitGroup
}

// take takes the connection of a call, whose reader may be away for a time.
func take(w http.ResponseWriter, away time.Duration, gone func()) (*connection, error) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	if err := giveUp(conn, away); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	h := w.Header()
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("Transfer-Encoding", "chunked")
	h.Set("Connection", "close") // the server does not get it back
	head := bytes.NewBufferString("HTTP/1.1 200 OK\r\n")
	if err := h.Write(head); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	head.WriteString("\r\n")
	c := &connection{conn: conn, head: head.Bytes()}
	c.reading.Go(func() {
		// As the server does: a caller that sends something is still there, and is
		// not asked again.
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			gone()
		}
	})
	return c, nil
}

var (
	lineEnd   = []byte("\r\n")
	lastChunk = []byte("0\r\n\r\n")
)

func (c *connection) write(frames [][]byte) error {
	size := 0
	for _, f := range frames {
		size += len(f)
	}
	if size == 0 {
		return nil // a chunk of nothing is the last one
	}
	c.parts = c.parts[:0]
	if c.head != nil {
		c.parts = append(c.parts, c.head)
		c.head = nil
	}
	c.parts = append(c.parts, append(strconv.AppendInt(c.length[:0], int64(size), 16), lineEnd...))
	c.parts = append(append(c.parts, frames...), lineEnd)
	return c.send()
}

// send writes the parts, and forgets them.
func (c *connection) send() error {
	all := c.parts // which is moved on as it is written
	_, err := all.WriteTo(c.conn)
	clear(c.parts)
	return err
}

func (c *connection) deadline(at time.Time) error { return c.conn.SetWriteDeadline(at) }

// close waits for no longer than the last deadline allows.
func (c *connection) close(whole bool) {
	if whole {
		_, _ = c.conn.Write(append(c.head, lastChunk...)) // the caller may have left
	}
	_ = c.conn.Close()
	c.reading.Wait()
}

// Take is Open for a call whose connection the stream takes from the server,
// where that can be done: over HTTP/1.1. Then the handler may return while the
// stream goes on, and the server keeps nothing of the call, whose context ends:
// gone is called when the caller has left. Taken says whether it was done. Close
// ends the stream.
func Take(w http.ResponseWriter, r *http.Request, timeout time.Duration, gone func()) (*Stream, error) {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 {
		return Open(w, timeout)
	}
	setHeaders(w.Header())
	c, err := take(w, timeout, gone)
	if errors.Is(err, http.ErrNotSupported) {
		return Open(w, timeout)
	}
	if err != nil {
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	return &Stream{wire: c, timeout: timeout, taken: true}, nil
}
