package sse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// ContentType is that of a stream.
const ContentType = "text/event-stream"

// chunk is how much is written with one deadline: a reader of a slow line that
// keeps on reading gets a large event all the same.
const chunk = 64 << 10

// Stream is the answer to one request. It is not safe for concurrent use.
type Stream struct {
	wire    wire
	timeout time.Duration
	taken   bool
	err     error // why nothing can be sent any more
	group   [][]byte

	mu   sync.Mutex // of the deadline, which the end of a context moves
	over error      // why the stream ends
	by   time.Time  // until when it may be written to, once it ends
	left bool
}

// Open begins the answer: nothing but events can follow. A reader that takes
// longer than timeout for a part of what it is sent loses the stream.
func Open(w http.ResponseWriter, timeout time.Duration) (*Stream, error) {
	control := http.NewResponseController(w)
	// A server that reads a request within a time would end the stream with it.
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	setHeaders(w.Header())
	w.WriteHeader(http.StatusOK)
	return &Stream{wire: answer{w, control}, timeout: timeout}, nil
}

func setHeaders(h http.Header) {
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-store")
	// For proxies that would gather what they pass on.
	h.Set("X-Accel-Buffering", "no")
}

// Taken says whether the stream goes on after its handler has returned.
func (s *Stream) Taken() bool { return s.taken }

// Close ends the answer. Nothing may use the stream any more.
func (s *Stream) Close() { s.wire.close(s.err == nil) }

// EndWith ends the stream with ctx: from then on its reader has last for all
// that it is still sent, and a Send that is busy with much stops. Otherwise a
// reader who takes a little now and then would keep a stream for hours after
// the right to it has gone. Call leave before the answer ends.
func (s *Stream) EndWith(ctx context.Context, last time.Duration) (leave func()) {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.left {
			return // the connection may serve another call
		}
		s.over, s.by = context.Cause(ctx), time.Now().Add(last)
		_ = s.wire.deadline(s.by) // Send sets it, too, and says what is wrong
	})
	return func() {
		stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left = true
	}
}

// extend gives the reader time for one more part, and says why the stream ends
// if it does.
func (s *Stream) extend() (over, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	deadline := time.Now().Add(s.timeout)
	if s.over != nil && s.by.Before(deadline) {
		deadline = s.by
	}
	return s.over, s.wire.deadline(deadline)
}

// Send writes frames and sees them off. An error means that the reader is gone
// or too slow, or that the stream has ended within a large event, and that
// nothing can be sent any more: what is would be read as a part of that event.
func (s *Stream) Send(frames ...[]byte) error {
	if s.err != nil {
		return s.err
	}
	if err := s.send(frames); err != nil {
		s.err = fmt.Errorf("writing to a stream: %w", err)
	}
	return s.err
}

// send writes what comes to at most chunk at a time: frames that are small
// together, large ones in parts.
func (s *Stream) send(frames [][]byte) error {
	defer func() {
		clear(s.group[:cap(s.group)]) // so that an idle stream keeps none of them alive
	}()
	sent, size := 0, 0
	s.group = s.group[:0]
	for _, f := range frames {
		for len(f) > 0 {
			part := f[:min(len(f), chunk-size)]
			f = f[len(part):]
			s.group = append(s.group, part)
			if size += len(part); size < chunk {
				continue
			}
			if err := s.write(sent); err != nil {
				return err
			}
			sent, size = sent+size, 0
		}
	}
	if size == 0 {
		return nil
	}
	return s.write(sent)
}

// write writes a group, when so much of the same Send has been sent.
func (s *Stream) write(sent int) error {
	over, err := s.extend()
	if err != nil {
		return err
	}
	// What is small is sent all the same, so that a reader can be told of the end.
	if over != nil && sent >= chunk {
		return over
	}
	err = s.wire.write(s.group)
	s.group = s.group[:0]
	return err
}

// ErrLagged says that a follower fell further behind than it may.
var ErrLagged = errors.New("the follower fell behind")

// Follower says how a stream follows a topic.
type Follower[T any] struct {
	Topic *Topic[T]
	// Cursor is where it begins.
	Cursor uint64
	// Frame gives the bytes of a message; nil for one that this stream does not
	// need.
	Frame func(T) []byte
	// Behind is how many messages may have gathered while the follower was being
	// sent others, once it has been up with the topic. Until then, what it did
	// not see before it came is no fault of its own, and neither is how many
	// come at once to one that waits; what the topic keeps is the bound.
	Behind int
	// Ping is sent whenever nothing else was for Every.
	Ping  func() []byte
	Every time.Duration
}

// Follow sends what is published until ctx ends, with its cause, the follower
// falls behind, with ErrLagged, or the stream breaks.
func (f Follower[T]) Follow(ctx context.Context, s *Stream) error {
	ping := time.NewTimer(f.Every)
	defer ping.Stop()
	frames := make([][]byte, 0, 16)
	level, sent := false, false // up with the topic once; busy with a Send until now
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		messages, moved, complete := f.Topic.After(f.Cursor)
		if !complete || (level && sent && len(messages) >= f.Behind) {
			return ErrLagged
		}
		level = level || len(messages) == 0
		f.Cursor += uint64(len(messages))
		frames = frames[:0]
		for _, m := range messages {
			if frame := f.Frame(m); frame != nil {
				frames = append(frames, frame)
			}
		}
		if len(frames) > 0 {
			if err := s.Send(frames...); err != nil {
				return err
			}
			clear(frames) // so that an idle stream keeps none of them alive
			ping.Reset(f.Every)
		}
		if sent = len(frames) > 0; sent || len(messages) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-moved:
		case <-ping.C:
			if err := s.Send(f.Ping()); err != nil {
				return err
			}
			ping.Reset(f.Every)
		}
	}
}
