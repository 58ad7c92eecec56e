package edge

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawHTTP2 is a connection for frames that no HTTP/2 client would send. It is
// used by one goroutine.
type rawHTTP2 struct {
	conn   net.Conn
	framer *http2.Framer
}

// dialHTTP2 connects without TLS, sends the preface and these settings.
func (e *edge) dialHTTP2(t *testing.T, settings ...http2.Setting) *rawHTTP2 {
	t.Helper()
	c, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the edge may have closed it already
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	f.AllowIllegalWrites = true
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return &rawHTTP2{conn: c, framer: f}
}

// block encodes header fields, in this order and spelling.
func block(fields ...[2]string) []byte {
	var out bytes.Buffer
	e := hpack.NewEncoder(&out)
	for _, f := range fields {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // a buffer takes everything
	}
	return out.Bytes()
}

// open sends a request's headers; end says that no body follows.
func (c *rawHTTP2) open(id uint32, end bool, fields ...[2]string) error {
	return c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: block(fields...), EndStream: end, EndHeaders: true,
	})
}

// What became of a stream or, with statuses aside, of its whole connection.
const (
	wasReset  = "reset"
	wasClosed = "closed" // the connection ended, with or without saying why
)

// outcome reads frames until it is known what became of a stream: its status,
// or that it or the connection was ended.
func (c *rawHTTP2) outcome(t *testing.T, id uint32) string {
	t.Helper()
	for {
		frame, err := c.framer.ReadFrame()
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			t.Fatal("the edge neither answers nor ends the stream")
		case err != nil:
			return wasClosed
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if frame.StreamID == id {
				return frame.PseudoValue("status")
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == id {
				return wasReset
			}
		case *http2.GoAwayFrame:
			return wasClosed
		}
	}
}

// request gives the fields of a read with the good token and these changes:
// a pseudo-header of the same name is replaced, all else is added.
func request(changes ...[2]string) [][2]string {
	out := [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "edge"}, {":path", "/v1/live"}}
	var more [][2]string
	for _, c := range changes {
		replaced := false
		for i := range out {
			if out[i][0] == c[0] {
				out[i], replaced = c, true
			}
		}
		if !replaced {
			more = append(more, c)
		}
	}
	return append(append(out, [2]string{"authorization", "Bearer " + goodToken}), more...)
}
