package sse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ContentType is that of a stream.
const ContentType = "text/event-stream"

// chunk is how much is written with one deadline: a reader of a slow line that
// keeps on reading gets a large event all the same.
const chunk = 64 << 10

// Stream is the answer to one request. It is not safe for concurrent use.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// Open begins the answer: nothing but events can follow. A reader that takes
// longer than timeout for a part of what it is sent loses the stream.
func Open(w http.ResponseWriter, timeout time.Duration) (*Stream, error) {
	s := &Stream{w: w, control: http.NewResponseController(w), timeout: timeout}
	// A server that reads a request within a time would end the stream with it.
	if err := s.control.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-store")
	// For proxies that would gather what they pass on.
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return s, nil
}

// Send writes frames and sees them off. An error means that the reader is gone
// or too slow, and that nothing can be sent any more.
func (s *Stream) Send(frames ...[]byte) error {
	for _, f := range frames {
		for len(f) > 0 {
			part := f[:min(len(f), chunk)]
			f = f[len(part):]
			if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
				return fmt.Errorf("writing to a stream: %w", err)
			}
			if _, err := s.w.Write(part); err != nil {
				return fmt.Errorf("writing to a stream: %w", err)
			}
		}
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return fmt.Errorf("writing to a stream: %w", err)
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("writing to a stream: %w", err)
	}
	return nil
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
