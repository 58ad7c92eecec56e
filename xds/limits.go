package xds

import (
	"net/http"
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/xds/model"
)

// Connecting to a backend, and to a process of the same pod.
const (
	connect      = time.Second
	localConnect = 250 * time.Millisecond
)

// breaker bounds the calls of one Envoy to one backend.
var breaker = model.Breaker{Connections: 4096, Pending: 4096, Requests: 8192, Retries: 64}

// wideBreaker is for what must not be the first to give way: decisions, which
// every call needs, and streams, which stay.
var wideBreaker = model.Breaker{Connections: 32768, Pending: 32768, Requests: 65536, Retries: 64}

// The bounds of request bodies. Reads take none, but some clients send an
// empty document with a GET; a change of cicd.yaml comes whole.
const (
	maxReadBody     = 16 << 10
	maxWriteBody    = 64 << 10
	maxDocumentBody = 1 << 20
)

func maxBody(op api.Operation) uint32 {
	switch {
	case op.Method == http.MethodGet:
		return maxReadBody
	case op.Write:
		return maxWriteBody
	default:
		return maxDocumentBody
	}
}

// idle is how long neither side of a call may send anything. The pings of an
// event stream are closer together.
const idle = time.Minute

// quietLog is how long a followed log may be silent: nothing pings it, and a
// container may work for long without a word. It is Tekton's own bound on a
// TaskRun where nobody says another.
const quietLog = time.Hour

// silence gives how long a stream may send nothing.
func silence(op api.Operation) time.Duration {
	switch {
	case !op.Stream:
		return 0
	case op.ID == "getLiveLogs":
		return quietLog
	default:
		return idle
	}
}

// limits protect one connection or call of the edge.
func limits() model.Limits {
	return model.Limits{
		MaxHeadersKiB:         32,
		MaxHeaders:            100,
		HeadersTimeout:        5 * time.Second,
		RequestTimeout:        30 * time.Second,
		IdleTimeout:           idle,
		ConnectionIdleTimeout: 5 * time.Minute,
		MaxStreamDuration:     24 * time.Hour,
		BufferBytes:           32 << 10,
		MaxConcurrentStreams:  100,
		StreamWindow:          64 << 10,
		ConnectionWindow:      1 << 20,
	}
}
