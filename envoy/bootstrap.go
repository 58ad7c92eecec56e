// Package envoy owns how an Envoy of the edge is started: its bootstrap and
// its arguments. What Envoy serves is not here; it gets that from xds. The
// package imports nothing of the project, so that whatever starts an Envoy
// (an image, a test, the local supervisor) can use it.
package envoy

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"text/template"
)

// Bootstrap says what differs between one Envoy and another.
type Bootstrap struct {
	// NodeID names this Envoy to xds and in traces; "edge" when empty.
	NodeID string
	// XDSSocket is the Unix socket that xds listens on; empty when there is a
	// RemoteXDS. AdminSocket is the one that Envoy makes for its admin
	// interface; it is required.
	XDSSocket, AdminSocket string
	// RemoteXDS is an xds that is not in this Envoy's pod.
	RemoteXDS *RemoteXDS
	// MaxHeapBytes is the heap at which Envoy would refuse all requests; it
	// starts to give memory back at 95 % and refuses requests at 98 %.
	// DefaultMaxHeapBytes when 0.
	MaxHeapBytes int64
	// MaxConnections bounds the open connections of callers, streams included.
	// As many as the heap has room for when 0.
	MaxConnections int64
}

// DefaultMaxHeapBytes is the heap of an Envoy that was given none.
const DefaultMaxHeapBytes = 1 << 30

// streamBytes is what Envoy allocates for a stream of a browser over a connection
// of HTTP/1.1 (docs/performance.md).
const streamBytes = 60 << 10

// connections is how many such streams a heap holds before Envoy begins to give
// memory back. With more of them it would soon refuse every call. (Many streams
// over one connection are less each, and bounded by the heap alone.)
func connections(heap int64) int64 { return heap / 100 * 95 / streamBytes }

// maxSocketPath is below the 108 bytes that the kernel has for a path, with
// the ending zero and a little room.
const maxSocketPath = 100

//go:embed bootstrap.yaml.tmpl
var bootstrapTemplate string

// Validate reports every fault of b together.
func (b Bootstrap) Validate() error {
	var errs []error
	sockets := []struct{ name, path string }{{"the admin socket", b.AdminSocket}}
	if b.RemoteXDS == nil {
		sockets = append(sockets, struct{ name, path string }{"the xds socket", b.XDSSocket})
	}
	for _, s := range sockets {
		switch {
		case s.path == "":
			errs = append(errs, fmt.Errorf("%s is not given", s.name))
		case len(s.path) > maxSocketPath:
			errs = append(errs, fmt.Errorf("%s has a path of %d bytes, more than %d", s.name, len(s.path), maxSocketPath))
		}
	}
	if b.XDSSocket != "" && b.XDSSocket == b.AdminSocket {
		errs = append(errs, errors.New("xds and the admin interface cannot share a socket"))
	}
	if b.RemoteXDS != nil {
		if b.XDSSocket != "" {
			errs = append(errs, errors.New("xds is on a socket or elsewhere, not both"))
		}
		errs = append(errs, b.RemoteXDS.validate())
	}
	if b.MaxHeapBytes < 0 || b.MaxConnections < 0 {
		errs = append(errs, errors.New("a limit cannot be negative"))
	}
	return errors.Join(errs...)
}

// Render gives the bootstrap as YAML, or every fault of b.
func (b Bootstrap) Render() ([]byte, error) {
	if err := b.Validate(); err != nil {
		return nil, fmt.Errorf("rendering the bootstrap: %w", err)
	}
	if b.NodeID == "" {
		b.NodeID = "edge"
	}
	if b.MaxHeapBytes == 0 {
		b.MaxHeapBytes = DefaultMaxHeapBytes
	}
	if b.MaxConnections == 0 {
		b.MaxConnections = connections(b.MaxHeapBytes)
	}
	t, err := template.New("bootstrap").Funcs(template.FuncMap{"json": jsonText}).Parse(bootstrapTemplate)
	if err != nil {
		return nil, fmt.Errorf("rendering the bootstrap: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, struct {
		Bootstrap
		StatPrefix string
	}{b, StatPrefix}); err != nil {
		return nil, fmt.Errorf("rendering the bootstrap: %w", err)
	}
	return out.Bytes(), nil
}

// jsonText quotes a value so that it stays one YAML scalar whatever it holds.
func jsonText(v any) (string, error) {
	raw, err := json.Marshal(v)
	return string(raw), err
}

// Args gives Envoy's arguments. config is the file with the bootstrap (or a
// whole static configuration); concurrency is the number of worker threads, 0
// for one a core. Envoy writes audit lines to stdout and its own log to
// stderr.
func Args(config string, concurrency int) []string {
	args := []string{
		"--config-path", config,
		// Hot restart shares memory by a number that is the same for every
		// Envoy of a machine; two edges would fight for it.
		"--disable-hot-restart",
		// An audit line is out a tenth of a second after its call at the latest.
		"--file-flush-interval-msec", "100",
		"--log-format", `{"time":"%Y-%m-%dT%T.%FZ","level":"%l","process":"envoy","logger":"%n","msg":"%j"}`,
		"--log-level", "warning",
	}
	if concurrency > 0 {
		args = append(args, "--concurrency", strconv.Itoa(concurrency))
	}
	return args
}
