package sse_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/sse"
)

// takenServer answers each call with a stream that serve writes, after the
// handler has returned, and closes.
func takenServer(t *testing.T, serve func(s *sse.Stream, gone <-chan struct{})) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gone := make(chan struct{})
		w.Header().Set("X-Before", "kept")
		s, err := sse.Take(w, r, 30*time.Second, func() { close(gone) })
		if err != nil || !s.Taken() {
			t.Errorf("not taken: %v", err)
			return
		}
		go func() {
			serve(s, gone)
			s.Close()
		}()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// send gives the connection that it made and wrote a request to.
func send(t *testing.T, url, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestAStreamThatTookItsConnectionIsReadAsAnyOther(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 20_000) // several chunks
	for name, sends := range map[string][][][]byte{
		"nothing":            nil,
		"an empty frame":     {{{}}, {[]byte("a")}},
		"small ones":         {{[]byte("a\n"), []byte("b\n")}, {[]byte("c\n")}},
		"a large one":        {{large}},
		"large among small":  {{[]byte("a"), large, []byte("b")}, {large, large}},
		"as large as a part": {{make([]byte, 64<<10)}, {make([]byte, 64<<10-1), []byte("xy")}},
	} {
		t.Run(name, func(t *testing.T) {
			resp := get(t, takenServer(t, func(s *sse.Stream, _ <-chan struct{}) {
				for _, frames := range sends {
					if err := s.Send(frames...); err != nil {
						t.Error(err)
					}
				}
			}))
			if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != sse.ContentType || resp.Header.Get("X-Before") != "kept" ||
				resp.Header.Get("Date") == "" || resp.ContentLength >= 0 {
				t.Errorf("status %d, headers %v", resp.StatusCode, resp.Header)
			}
			got, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
			}
			var want []byte
			for _, frames := range sends {
				want = append(want, bytes.Join(frames, nil)...)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, want %d", len(got), len(want))
			}
		})
	}
}

func TestAStreamThatTookItsConnectionHearsThatItsReaderLeft(t *testing.T) {
	heard := make(chan struct{})
	resp := get(t, takenServer(t, func(s *sse.Stream, gone <-chan struct{}) {
		if err := s.Send([]byte("a\n")); err != nil {
			t.Error(err)
		}
		<-gone
		close(heard)
	}))
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "a\n" {
		t.Errorf("got %q, %v", line, err)
	}
	_ = resp.Body.Close()
	<-heard
}

// Nobody must take the beginning of an event for the whole of an answer.
func TestAnAnswerThatBrokeOffDoesNotLookWhole(t *testing.T) {
	for name, last := range map[string]time.Duration{
		"because its time is over":         time.Nanosecond,
		"within a large event, at its end": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			resp := get(t, takenServer(t, func(s *sse.Stream, _ <-chan struct{}) {
				if err := s.Send([]byte("a\n")); err != nil { // with the headers, which the time may be too short for
					t.Error(err)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(errOver)
				defer s.EndWith(ctx, last)()
				for s.Send(make([]byte, 1<<20)) == nil { // until it has ended
				}
			}))
			if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func TestWhatHasNoConnectionOfItsOwnIsServedAllTheSame(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := sse.Take(w, r, 30*time.Second, func() { t.Error("gone") })
		if err != nil || s.Taken() {
			t.Errorf("taken: %v", err)
			return
		}
		defer s.Close()
		if err := s.Send([]byte("a\n"), []byte("b\n")); err != nil {
			t.Error(err)
		}
	})
	t.Run("HTTP/2", func(t *testing.T) {
		server := httptest.NewUnstartedServer(handler)
		server.EnableHTTP2 = true
		server.StartTLS()
		defer server.Close()
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if got, err := io.ReadAll(resp.Body); err != nil || resp.ProtoMajor != 2 || string(got) != "a\nb\n" {
			t.Errorf("over %s got %q, %v", resp.Proto, got, err)
		}
	})
	t.Run("HTTP/1.0, which has no chunks", func(t *testing.T) {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		conn := send(t, server.URL, "GET / HTTP/1.0\r\n\r\n")
		if got, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(got), "\r\n\r\na\nb\n") {
			t.Errorf("got %q, %v", got, err)
		}
	})
}
